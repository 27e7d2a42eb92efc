import { ApolloServer } from '@apollo/server'
import { startStandaloneServer } from '@apollo/server/standalone'

const server = new ApolloServer({ typeDefs: 'type Query { hello: String }', resolvers: { Query: { hello: () => `hello from apollo, pid ${process.pid}` } } })
await startStandaloneServer(server, { listen: { port: Number(process.env.PORT) } })
