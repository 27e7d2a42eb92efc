const dgram = require('node:dgram')

const socket = dgram.createSocket('udp4')
socket.on('message', (message, { port, address }) => socket.send(`hello ${message}, pid ${process.pid}`, port, address))
socket.bind(Number(process.env.PORT))
