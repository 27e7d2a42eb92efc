const restify = require('restify')

const server = restify.createServer()
server.get('/', (request, response, next) => {
  response.send(`hello from restify, pid ${process.pid}`)
  return next()
})
server.listen(process.env.PORT)
