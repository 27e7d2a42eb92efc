import { createRequire } from 'node:module'
import path from 'node:path'

const PATIENCE_MS = 20_000

/**
 * gRPC, by turns a unary call and one that is answered by a stream, as `hello.proto` of the program has them.
 * @param {import('../protocols.js').Target} target
 * @returns {import('../clients.js').Session}
 */
export function openGrpc ({ folder, host, port }) {
  const { grpc, Greeter } = load(folder)
  // Channels share their connections otherwise, and none would be new.
  const client = new Greeter(`${host}:${port}`, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
  let calls = 0
  return {
    ask: () => calls++ % 2 === 0 ? askOnce(client) : askForMany(client),
    close: () => client.close()
  }
}

/** @type {Map<string, any>} */
const loaded = new Map()

/** @param {string} folder */
function load (folder) {
  if (!loaded.has(folder)) {
    const requireThere = createRequire(path.join(folder, 'package.json'))
    const grpc = requireThere('@grpc/grpc-js')
    const { Greeter } = grpc.loadPackageDefinition(requireThere('@grpc/proto-loader').loadSync(path.join(folder, 'hello.proto'))).hello
    loaded.set(folder, { grpc, Greeter })
  }
  return loaded.get(folder)
}

/** @param {any} client @returns {Promise<string>} */
function askOnce (client) {
  return new Promise((resolve, reject) => {
    client.sayHello({ name: 'gallery' }, { deadline: Date.now() + PATIENCE_MS }, (/** @type {any} */ error, /** @type {any} */ reply) => error ? reject(error) : resolve(reply.message))
  })
}

/** @param {any} client @returns {Promise<string>} */
function askForMany (client) {
  return new Promise((resolve, reject) => {
    /** @type {string[]} */
    const messages = []
    const call = client.sayHelloOften({ name: 'gallery' }, { deadline: Date.now() + PATIENCE_MS })
    call.on('data', (/** @type {any} */ { message }) => messages.push(message)).on('error', reject)
    call.on('end', () => messages.length === 5 ? resolve(messages[0]) : reject(new Error(`${messages.length} of 5 messages came`)))
  })
}
