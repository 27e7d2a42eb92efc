import http from 'node:http'

const greeting: string = `hello from typescript, pid ${process.pid}`
http.createServer((_request, response) => response.end(greeting)).listen(process.env.PORT)
