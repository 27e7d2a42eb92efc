import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { DeckError } from '../errors.js'

/**
 * Node passes sockets through the channel of a parent and its child alone. But a process takes any connection as its channel
 * whose descriptor NODE_CHANNEL_FD names. So one program on each side has the connection between two masters as its channel:
 * the sending one has the sockets as descriptors, and the receiving one gives them as such to a third, which has the channel
 * of the process that wants them.
 *
 * @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle
 * @typedef {'stream' | 'datagram'} Kind
 * @typedef {SocketHandle | number} Passable  a handle, or a descriptor of this process
 */

const HAND_ON = fileURLToPath(new URL('hand-on-sockets.js', import.meta.url))
const TAKE = fileURLToPath(new URL('take-sockets.js', import.meta.url))
/** A channel that Node opens itself has its own descriptor in the environment, which only the shell can change on the way. */
const WITH_OTHER_CHANNEL = ['-c', 'export NODE_CHANNEL_FD=3; exec "$@"', 'sh']
const WITHIN_MS = 10_000

/** @param {SocketHandle} handle @returns {Kind} */
export function kindOf (handle) {
  return 'recvStop' in handle ? 'datagram' : 'stream'
}

/**
 * @param {import('node:net').Socket} connection  is closed here; nobody may have read from it
 * @param {readonly { socket: Passable, kind: Kind }[]} sockets  stay open here
 * @throws {DeckError} not-possible
 */
export async function sendSockets (connection, sockets) {
  const stdio = ['ignore', 'ignore', 'inherit', connection, ...sockets.map(({ socket }) => socket)]
  const child = spawn(process.execPath, [HAND_ON, ...sockets.map(({ kind }) => kind)], { env: environment({ NODE_CHANNEL_FD: '3' }), stdio: /** @type {any} */ (stdio) })
  connection.destroy()
  await untilDone(child)
}

/**
 * @param {import('node:net').Socket} connection  is closed here; nobody may have read from it
 * @param {readonly Kind[]} kinds
 * @returns {Promise<SocketHandle[]>} none of them listens or receives here
 * @throws {DeckError} not-possible; then none is open here
 */
export async function receiveSockets (connection, kinds) {
  const stdio = ['ignore', 'ignore', 'inherit', connection, 'ipc']
  const child = spawn('/bin/sh', [...WITH_OTHER_CHANNEL, process.execPath, TAKE, ...kinds], { env: environment({}), stdio: /** @type {any} */ (stdio) })
  connection.destroy()
  /** @type {SocketHandle[]} */
  const handles = []
  child.on('message', (/** @type {{ index: number }} */ { index }, handle) => {
    handles[index] = /** @type {any} */ (handle)
    if (Object.keys(handles).length === kinds.length) child.disconnect()
  })
  try {
    await untilDone(child)
    if (Object.keys(handles).length < kinds.length) throw failure('some of them are missing')
    return handles
  } catch (error) {
    for (const handle of handles) handle?.close()
    if (child.connected) child.disconnect()
    throw error
  }
}

/** @param {import('node:child_process').ChildProcess} child @throws {DeckError} not-possible */
async function untilDone (child) {
  const timer = setTimeout(() => child.kill('SIGKILL'), WITHIN_MS)
  try {
    const [code, signal] = await once(child, 'exit')
    if (code !== 0) throw failure(signal === null ? `exit code ${code}` : `killed by ${signal}`)
  } catch (error) {
    throw error instanceof DeckError ? error : failure(String(error))
  } finally {
    clearTimeout(timer)
  }
}

/** @param {string} reason */
function failure (reason) {
  return new DeckError('not-possible', `the sockets could not be passed on: ${reason}`)
}

/** What an app preloads is nothing for these programs. @param {Record<string, string>} more */
function environment (more) {
  const { NODE_OPTIONS, NODE_CHANNEL_FD, NODE_CHANNEL_SERIALIZATION_MODE, ...env } = process.env
  return { ...env, ...more }
}
