const http = require('node:http')

// As proxies do that pass on the headers of the server behind them.
http.createServer((request, response) => {
  response.setHeader('Connection', 'keep-alive')
  response.end(`hello and stay, pid ${process.pid}`)
}).listen(process.env.PORT)
