import http from 'node:http'
import { detect } from 'detect-port'

const port = await detect(Number(process.env.PORT))
http.createServer((request, response) => response.end(`hello by detect-port, pid ${process.pid}`)).listen(port)
