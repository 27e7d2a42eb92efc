const Hapi = require('@hapi/hapi')

const server = Hapi.server({ port: process.env.PORT, host: '127.0.0.1' })
server.route({ method: 'GET', path: '/', handler: () => `hello from hapi, pid ${process.pid}` })
server.start()
process.on('SIGTERM', async () => {
  await server.stop({ timeout: 10_000 })
  process.exit(0)
})
