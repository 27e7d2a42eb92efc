const http = require('node:http')
const { createTerminus } = require('@godaddy/terminus')

const server = http.createServer((request, response) => response.end(`hello from behind terminus, pid ${process.pid}`))
createTerminus(server, { signal: 'SIGTERM', healthChecks: { '/health': async () => 'ok' }, onSignal: async () => {} })
server.listen(process.env.PORT)
