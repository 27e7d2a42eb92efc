import { Hono } from 'hono'

const app = new Hono().get('/', (context) => context.text(`hello from hono, pid ${Deno.pid}`))
Deno.serve({ port: Number(Deno.env.get('PORT')) }, app.fetch)
