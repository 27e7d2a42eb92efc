import http from 'node:http'
import getPort from 'get-port'

const port = await getPort({ port: Number(process.env.PORT) })
http.createServer((request, response) => response.end(`hello by get-port, pid ${process.pid}`)).listen(port)
