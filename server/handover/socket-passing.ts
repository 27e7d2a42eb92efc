import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { DeckError } from '../errors.ts'
import { scriptPath } from '../system/built.ts'
import type { Socket } from 'node:net'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/**
 * Node passes sockets through the channel of a parent and its child alone. But a process takes any connection as its
 * channel whose descriptor NODE_CHANNEL_FD names. So one program on each side has the connection between two masters as
 * its channel: the sending one has the sockets as descriptors, and the receiving one gives them as such to a third,
 * which has the channel of the process that wants them.
 */
export type Kind = 'stream' | 'datagram'
/** a handle, or a descriptor of this process */
export type Passable = SocketHandle | number

const HAND_ON = scriptPath('hand-on-sockets.js')
const TAKE = scriptPath('take-sockets.js')
/**
 * A channel that Node opens itself has its own descriptor in the environment, which only the shell can change on the
 * way.
 */
const WITH_OTHER_CHANNEL = ['-c', 'export NODE_CHANNEL_FD=3; exec "$@"', 'sh']
const WITHIN_MS = 10_000

export function kindOf (handle: SocketHandle): Kind {
  return 'recvStop' in handle ? 'datagram' : 'stream'
}

/**
 * `connection`: is closed here; nobody may have read from it; `sockets`: stay open here.
 * @throws {DeckError} not-possible
 */
export async function sendSockets (connection: Socket, sockets: readonly { socket: Passable, kind: Kind }[]) {
  const stdio = ['ignore', 'ignore', 'inherit', connection, ...sockets.map(({ socket }) => socket)]
  const child = spawn(process.execPath, [HAND_ON, ...sockets.map(({ kind }) => kind)], {
    env: environment({ NODE_CHANNEL_FD: '3' }),
    stdio: stdio as StdioOptions
  })
  connection.destroy()
  await untilDone(child)
}

/**
 * `connection`: is closed here; nobody may have read from it. Returns none of them listens or receives here.
 * @throws {DeckError} not-possible; then none is open here
 */
export async function receiveSockets (connection: Socket, kinds: readonly Kind[]): Promise<SocketHandle[]> {
  const stdio = ['ignore', 'ignore', 'inherit', connection, 'ipc']
  const child = spawn('/bin/sh', [...WITH_OTHER_CHANNEL, process.execPath, TAKE, ...kinds], { env: environment({}),
    stdio: stdio as StdioOptions })
  connection.destroy()
  const handles: SocketHandle[] = []
  child.on('message', ({ index }: { index: number }, handle: unknown) => {
    handles[index] = handle as SocketHandle
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

/** @throws {DeckError} not-possible */
async function untilDone (child: ChildProcess) {
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

function failure (reason: string) {
  return new DeckError('not-possible', `the sockets could not be passed on: ${reason}`)
}

/** What an app preloads is nothing for these programs. */
function environment (more: Record<string, string>) {
  const { NODE_OPTIONS, NODE_CHANNEL_FD, NODE_CHANNEL_SERIALIZATION_MODE, ...env } = process.env
  return { ...env, ...more }
}
