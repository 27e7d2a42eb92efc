import websocket from '@fastify/websocket'
import Fastify from 'fastify'

const server = Fastify()
await server.register(websocket)
server.get('/', { websocket: true }, (socket) => {
  socket.on('message', (message) => socket.send(`hello ${message}, pid ${process.pid}`))
})
await server.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
