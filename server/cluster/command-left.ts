import { EventEmitter } from 'node:events'
import net from 'node:net'
import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { followCommand } from './command-run.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/** Every so often it looks whether the command still runs: perhaps nobody tells that it has ended. */
const LOOK_EVERY_MS = 500
/** The keeper gets this long to tell how the command has ended. */
const TOLD_WITHIN_MS = 2000

export type Exit = { code: number | null, signal: string | null }
export type LeftChild = EventEmitter & { pid: number, stdout: net.Socket, stderr: net.Socket }
type Left = {
  identity: ProcessIdentity,
  /** through which its output comes */
  handles: { stdout: SocketHandle, stderr: SocketHandle },
  /** null: nobody has told yet */
  findExit: () => Exit | null
}

/**
 * Goes on with a command that a master before has started. It is the keeper's child by now, which tells how it ends.
 */
export function adoptCommand ({ identity, handles, findExit }: Left,
  order: Omit<Parameters<typeof followCommand>[1], 'identity' | 'place'>)
{
  return followCommand(createLeftChild({ identity, handles, findExit }), { ...order, identity })
}

/** Makes something that can be followed as a child process can. */
function createLeftChild ({ identity, handles, findExit }: Left): LeftChild {
  const streams = { stdout: openHandle(handles.stdout), stderr: openHandle(handles.stderr) }
  const child = Object.assign(new EventEmitter(), { pid: identity.pid, ...streams })
  let open = 2
  for (const stream of Object.values(streams)) {
    // ECONNRESET: a process that was killed has left nothing more to read.
    stream.on('error', () => {})
    stream.once('close', () => {
      if (--open === 0) child.emit('close')
    })
  }
  let unseenMs = 0
  const timer = setInterval(look, LOOK_EVERY_MS)
  timer.unref()
  process.nextTick(look)
  return child

  function look () {
    if (child.listenerCount('exit') === 0) return clearInterval(timer)
    if (isAlive(identity)) return
    const exit = findExit()
    if (exit === null && unseenMs < TOLD_WITHIN_MS) {
      unseenMs += LOOK_EVERY_MS
      return
    }
    clearInterval(timer)
    child.emit('exit', exit?.code ?? null, exit?.signal ?? null)
  }
}

function openHandle (handle: SocketHandle) {
  return new net.Socket({ handle, readable: true, writable: false })
}
