const express = require('express')
const gracefulShutdown = require('http-graceful-shutdown')

const app = express()
app.get('/', (request, response) => { response.send(`hello from express, pid ${process.pid}`) })
gracefulShutdown(app.listen(process.env.PORT))
