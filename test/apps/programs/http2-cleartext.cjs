const http2 = require('node:http2')

http2.createServer((request, response) => response.end(`hello over h2c, pid ${process.pid}`)).listen(process.env.PORT)
