const express = require('express')

const app = express()
app.get('/', (request, response) => { response.send(`hello from express, pid ${process.pid}`) })
const server = app.listen(process.env.PORT)

// As the documentation of Express has it.
process.on('SIGTERM', () => {
  console.log('SIGTERM signal received: closing HTTP server')
  server.close(() => {
    console.log('HTTP server closed')
  })
})
