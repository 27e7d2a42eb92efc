require('node:http').createServer((_request, response) => response.end(`hello from npm, pid ${process.pid}`)).listen(process.env.PORT)
