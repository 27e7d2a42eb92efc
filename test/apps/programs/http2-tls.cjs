const { readFileSync } = require('node:fs')
const http2 = require('node:http2')
const path = require('node:path')

const [key, cert] = ['key', 'cert'].map((name) => readFileSync(path.join(__dirname, 'tls', `${name}.pem`)))
http2.createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => response.end(`hello over h2, pid ${process.pid}`)).listen(process.env.PORT)
