const express = require('express')
const { createProxyMiddleware } = require('http-proxy-middleware')

const app = express()
app.use('/', createProxyMiddleware({ target: process.env.UPSTREAM, changeOrigin: true }))
app.listen(process.env.PORT)
