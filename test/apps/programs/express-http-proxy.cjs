const express = require('express')
const proxy = require('express-http-proxy')

const app = express()
app.use('/', proxy(process.env.UPSTREAM))
app.listen(process.env.PORT)
