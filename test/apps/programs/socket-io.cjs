const { Server } = require('socket.io')

const io = new Server(Number(process.env.PORT))
io.on('connection', (socket) => {
  socket.on('ask', (name, answer) => answer(`hello ${name}, pid ${process.pid}`))
})
