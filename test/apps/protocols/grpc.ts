import { createRequire } from 'node:module'
import path from 'node:path'
import type { EventEmitter } from 'node:events'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

const PATIENCE_MS = 20_000

/** gRPC, by turns a unary call and one that is answered by a stream, as `hello.proto` of the program has them. */
export function openGrpc ({ folder, host, port }: Target): Session {
  const { grpc, Greeter } = load(folder)
  // Channels share their connections otherwise, and none would be new.
  const client = new Greeter(`${host}:${port}`, grpc.credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1
  })
  let calls = 0
  return { ask: () => calls++ % 2 === 0 ? askOnce(client) : askForMany(client), close: () => client.close() }
}

type Reply = { message: string }
type GreeterClient = {
  sayHello: (order: object, options: object, done: (error: Error | null, reply: Reply) => void) => void,
  sayHelloOften: (order: object, options: object) => EventEmitter,
  close: () => void
}
/** What is used of the package, which is installed with the program. */
type Loaded = { grpc: { credentials: { createInsecure: () => object } },
  Greeter: new(address: string, credentials: object, options: object) => GreeterClient }

const loaded: Map<string, Loaded> = new Map()

function load (folder: string) {
  let known = loaded.get(folder)
  if (!known) {
    const requireThere = createRequire(path.join(folder, 'package.json'))
    const grpc = requireThere('@grpc/grpc-js')
    const { Greeter } =
      grpc.loadPackageDefinition(requireThere('@grpc/proto-loader').loadSync(path.join(folder, 'hello.proto'))).hello
    loaded.set(folder, known = { grpc, Greeter })
  }
  return known
}

function askOnce (client: GreeterClient): Promise<string> {
  return new Promise((resolve, reject) => {
    client.sayHello({ name: 'gallery' }, { deadline: Date.now() + PATIENCE_MS },
      (error, reply) => error ? reject(error) : resolve(reply.message))
  })
}

function askForMany (client: GreeterClient): Promise<string> {
  return new Promise((resolve, reject) => {
    const messages: string[] = []
    const call = client.sayHelloOften({ name: 'gallery' }, { deadline: Date.now() + PATIENCE_MS })
    call.on('data', ({ message }) => messages.push(message)).on('error', reject)
    call.on('end',
      () => messages.length === 5 ? resolve(messages[0]) : reject(new Error(`${messages.length} of 5 messages came`)))
  })
}
