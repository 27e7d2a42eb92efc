const net = require('node:net')

net.createServer((socket) => {
  socket.on('error', () => {}).on('data', (data) => socket.write(`hello ${data.toString().trim()}, pid ${process.pid}\n`))
}).listen(process.env.PORT)
