import proxy from '@fastify/http-proxy'
import Fastify from 'fastify'

const server = Fastify()
server.register(proxy, { upstream: process.env.UPSTREAM })
await server.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
