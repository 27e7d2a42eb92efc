// Echoes WebSocket messages, after it has told the pid that a client has met.
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const server = createServer((_request, response) => response.end(`pid ${process.pid}`))
new WebSocketServer({ server }).on('connection', (socket) => {
  socket.on('error', console.error)
  socket.on('message', (message) => socket.send(String(message)))
  socket.send(`pid ${process.pid}`)
})
// More than 511 clients come at once.
server.listen({ port: Number(process.env.PORT), backlog: 4096 })
