import Fastify from 'fastify'

const fastify = Fastify()
fastify.get('/', async () => ({ hello: 'from fastify', text: `pid ${process.pid}` }))
await fastify.listen({ port: Number(process.env.PORT) })
