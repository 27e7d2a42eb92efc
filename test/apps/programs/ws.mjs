import { WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: Number(process.env.PORT) })
server.on('connection', (socket) => {
  socket.on('error', console.error)
  socket.on('message', (message) => socket.send(`hello ${message}, pid ${process.pid}`))
})
