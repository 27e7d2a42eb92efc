import http from 'node:http'
import portfinder from 'portfinder'

const port = await portfinder.getPortPromise({ port: Number(process.env.PORT) })
http.createServer((request, response) => response.end(`hello by portfinder, pid ${process.pid}`)).listen(port)
