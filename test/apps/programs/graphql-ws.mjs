import { useServer } from 'graphql-ws/use/ws'
import { buildSchema } from 'graphql'
import { WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: Number(process.env.PORT), path: '/graphql' })
useServer({ schema: buildSchema('type Query { hello: String }'), roots: { query: { hello: () => 'hello' } } }, server)
