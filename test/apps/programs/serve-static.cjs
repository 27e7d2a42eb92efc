const http = require('node:http')
const finalhandler = require('finalhandler')
const serveStatic = require('serve-static')

const serve = serveStatic('public')
http.createServer((request, response) => serve(request, response, finalhandler(request, response))).listen(process.env.PORT)
