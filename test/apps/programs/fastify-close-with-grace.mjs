import closeWithGrace from 'close-with-grace'
import Fastify from 'fastify'

const fastify = Fastify()
fastify.get('/', async () => ({ hello: 'from fastify', text: `pid ${process.pid}` }))
closeWithGrace({ delay: 10_000 }, async ({ err }) => {
  if (err) fastify.log.error(err)
  await fastify.close()
})
await fastify.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
