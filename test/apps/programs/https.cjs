const { readFileSync } = require('node:fs')
const https = require('node:https')
const path = require('node:path')

const [key, cert] = ['key', 'cert'].map((name) => readFileSync(path.join(__dirname, 'tls', `${name}.pem`)))
https.createServer({ key, cert }, (request, response) => response.end(`hello over https, pid ${process.pid}`)).listen(process.env.PORT)
