import Fastify from 'fastify'
import mercurius from 'mercurius'

const app = Fastify()
app.register(mercurius, { schema: 'type Query { hello: String }', resolvers: { Query: { hello: () => `hello from mercurius, pid ${process.pid}` } } })
await app.listen({ port: Number(process.env.PORT) })
