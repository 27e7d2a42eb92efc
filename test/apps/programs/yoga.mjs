import { createServer } from 'node:http'
import { createSchema, createYoga } from 'graphql-yoga'

const schema = createSchema({ typeDefs: 'type Query { hello: String }', resolvers: { Query: { hello: () => `hello from yoga, pid ${process.pid}` } } })
createServer(createYoga({ schema })).listen(process.env.PORT)
