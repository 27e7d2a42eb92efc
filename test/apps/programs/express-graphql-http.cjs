const express = require('express')
const { GraphQLObjectType, GraphQLSchema, GraphQLString } = require('graphql')
const { createHandler } = require('graphql-http/lib/use/express')

const hello = { type: GraphQLString, resolve: () => `hello from graphql-http, pid ${process.pid}` }
const app = express()
app.all('/graphql', createHandler({ schema: new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { hello } }) }) }))
app.listen(process.env.PORT)
