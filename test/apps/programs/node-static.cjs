const http = require('node:http')
const { Server } = require('node-static')

const files = new Server('./public')
http.createServer((request, response) => { request.addListener('end', () => files.serve(request, response)).resume() }).listen(process.env.PORT)
