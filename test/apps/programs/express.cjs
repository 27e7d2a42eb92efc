const express = require('express')

const app = express()
app.get('/', (request, response) => { response.send(`hello from express, pid ${process.pid}`) })
app.listen(process.env.PORT)
