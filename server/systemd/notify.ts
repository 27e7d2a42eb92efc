import { spawn } from 'node:child_process'
import { loadPosix, type Posix } from '../system/posix.ts'

const RETRY_MS = 100
/** A receiver that starts itself anew, as systemd does in an update, reads nothing for a while. */
const PATIENCE_MS = 5000
const MAX_QUEUED = 50

/** A socket that goes along with a message, unless it is closed before that is sent. */
type Sent = { readonly fd: number }

/**
 * Sends messages to the socket of a service manager, in order. A datagram socket may be full for a while, and Node has
 * none for Unix paths: without the native calls, the program that comes with systemd sends them, without sockets.
 * @param path NOTIFY_SOCKET; one that begins with @ is in the abstract namespace
 * @param options `maxQueued`: of more that wait, the oldest are left out
 */
export function createNotifier (path: string | undefined,
  { load = loadPosix, run = spawn, maxQueued = MAX_QUEUED, say = (line) => {
    process.stderr.write(`clusterdeck: ${line}\n`)
  } }: { load?: typeof loadPosix, run?: typeof spawn, maxQueued?: number, say?: (line: string) => void } = {}
): (message: string, socket?: Sent) => void {
  /** the first one is on its way */
  const queue: { message: string, socket?: Sent }[] = []
  let isUseless = path === undefined
  let hasSaid = false

  return (message, socket) => {
    // Nobody reads: a second WATCHDOG=1 behind another is no news.
    if (isUseless || (queue.length > 1 && queue.at(-1)?.message === message)) return
    if (queue.length === maxQueued) queue.splice(1, 1)
    queue.push({ message, socket })
    if (queue.length === 1) sendFirst()
  }

  function sendFirst () {
    const [{ message }] = queue
    if (!/^[/@]/.test(String(path))) return giveUp(`expected a path, or @ and a name, received ${JSON.stringify(path)}`)
    const posix = load()
    if (posix) sendDatagram(posix, 0)
    else runProgram(message)
  }

  function sendDatagram (posix: Posix, waitedMs: number) {
    const [{ message, socket }] = queue
    const isClosed = socket !== undefined && socket.fd < 0
    if (isClosed || posix.sendDatagram(String(path), message, socket?.fd)) return sendNext()
    if (waitedMs === PATIENCE_MS) sayOnce(`${path} takes no message; trying on`)
    setTimeout(sendDatagram, RETRY_MS, posix, waitedMs + RETRY_MS).unref()
  }

  function runProgram (message: string) {
    run('systemd-notify', ['--', ...message.split('\n')], { stdio: 'ignore' }).on('error',
      (error) =>
        giveUp(
          `neither the optional package koffi nor the program systemd-notify can be used (${error.message}); the service manager is told nothing`
        )).on('exit', (code) => {
        if (code !== 0) sayOnce(`systemd-notify ended with ${code}`)
        sendNext()
      }).unref()
  }

  function sendNext () {
    queue.shift()
    if (queue.length > 0) sendFirst()
  }

  function giveUp (reason: string) {
    isUseless = true
    queue.length = 0
    sayOnce(reason)
  }

  function sayOnce (reason: string) {
    if (!hasSaid) say(`NOTIFY_SOCKET: ${reason}`)
    hasSaid = true
  }
}
