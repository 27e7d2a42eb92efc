const Koa = require('koa')

const app = new Koa()
app.use((context) => { context.body = `hello from koa, pid ${process.pid}` })
app.listen(process.env.PORT)
