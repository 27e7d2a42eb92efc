import { createApp, eventHandler, toNodeListener } from 'h3'
import { listen } from 'listhen'

const app = createApp()
app.use('/', eventHandler(() => `hello from listhen, pid ${process.pid}`))
await listen(toNodeListener(app), { port: process.env.PORT, showURL: false })
