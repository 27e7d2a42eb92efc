const httpProxy = require('http-proxy')

httpProxy.createProxyServer({ target: process.env.UPSTREAM }).listen(Number(process.env.PORT))
