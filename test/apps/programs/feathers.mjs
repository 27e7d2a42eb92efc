import { feathers } from '@feathersjs/feathers'
import { koa, rest } from '@feathersjs/koa'

const app = koa(feathers())
app.configure(rest())
app.use('messages', { async find () { return [{ text: `hello from feathers, pid ${process.pid}` }] } })
await app.listen(Number(process.env.PORT))
