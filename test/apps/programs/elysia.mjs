import { node } from '@elysiajs/node'
import { Elysia } from 'elysia'

new Elysia({ adapter: node() }).get('/', () => `hello from elysia, pid ${process.pid}`).listen(Number(process.env.PORT))
