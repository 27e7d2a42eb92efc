import { Elysia } from 'elysia'

new Elysia().get('/', () => `hello from elysia, pid ${process.pid}`).listen(Number(process.env.PORT))
