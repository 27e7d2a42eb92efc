import Fastify from 'fastify'

const fastify = Fastify({ http2: true })
fastify.get('/', async () => ({ hello: 'from fastify', text: `pid ${process.pid}` }))
await fastify.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
