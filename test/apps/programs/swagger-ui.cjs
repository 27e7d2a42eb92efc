const express = require('express')
const swaggerUi = require('swagger-ui-express')

const app = express()
app.use('/', swaggerUi.serve, swaggerUi.setup({ openapi: '3.0.0', info: { title: 'gallery', version: '1.0.0' }, paths: {} }))
app.listen(process.env.PORT)
