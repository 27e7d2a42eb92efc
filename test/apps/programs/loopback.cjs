const { RestApplication } = require('@loopback/rest')

const app = new RestApplication({ rest: { port: Number(process.env.PORT), host: '127.0.0.1' } })
app.handler(({ response }, sequence) => { sequence.send(response, `hello from loopback, pid ${process.pid}`) })
app.start()
