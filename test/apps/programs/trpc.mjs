import { initTRPC } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'

const { router, procedure } = initTRPC.create()
createHTTPServer({ router: router({ hello: procedure.query(() => `hello from trpc, pid ${process.pid}`) }) }).listen(process.env.PORT)
