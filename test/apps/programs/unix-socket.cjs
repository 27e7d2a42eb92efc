const http = require('node:http')

http.createServer((request, response) => response.end(`hello over a Unix socket, pid ${process.pid}`)).listen(process.env.SOCKET)
