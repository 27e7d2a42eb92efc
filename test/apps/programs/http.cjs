const http = require('node:http')

http.createServer((request, response) => response.end(`hello from node:http, pid ${process.pid}`)).listen(process.env.PORT)
