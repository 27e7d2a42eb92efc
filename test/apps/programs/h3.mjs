import { createServer } from 'node:http'
import { createApp, eventHandler, toNodeListener } from 'h3'

const app = createApp()
app.use('/', eventHandler(() => `hello from h3, pid ${process.pid}`))
createServer(toNodeListener(app)).listen(process.env.PORT)
