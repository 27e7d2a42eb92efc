const http = require('node:http')
const { createHttpTerminator } = require('http-terminator')

const server = http.createServer((request, response) => response.end(`hello until terminated, pid ${process.pid}`)).listen(process.env.PORT)
const terminator = createHttpTerminator({ server })
process.on('SIGTERM', () => terminator.terminate())
