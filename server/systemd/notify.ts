import { spawn } from 'node:child_process'
import { loadPosix, type Posix } from '../system/posix.ts'

const RETRY_MS = 100
/** A receiver that starts itself anew, as systemd does in an update, reads nothing for a while. */
const PATIENCE_MS = 5000
const MAX_QUEUED = 50

/**
 * Sends messages to the socket of a service manager, in order. A datagram socket may be full for a while, and Node has
 * none for Unix paths: without the native calls, the program that comes with systemd sends them.
 * @param path NOTIFY_SOCKET; one that begins with @ is in the abstract namespace
 */
export function createNotifier (path: string | undefined, { load = loadPosix, run = spawn, say = (line) => {
  process.stderr.write(`clusterdeck: ${line}\n`)
} }: { load?: typeof loadPosix, run?: typeof spawn, say?: (line: string) => void } = {}): (message: string) => void {
  /** the first one is on its way */
  const queue: string[] = []
  let isUseless = path === undefined
  let hasSaid = false

  return (message) => {
    // Nobody reads: a second WATCHDOG=1 behind another is no news.
    if (isUseless || (queue.length > 1 && queue.at(-1) === message)) return
    if (queue.length === MAX_QUEUED) queue.splice(1, 1)
    queue.push(message)
    if (queue.length === 1) sendMessage(message)
  }

  function sendMessage (message: string) {
    if (!/^[/@]/.test(String(path))) return giveUp(`expected a path, or @ and a name, received ${JSON.stringify(path)}`)
    const posix = load()
    if (posix) sendDatagram(posix, message, 0)
    else runProgram(message)
  }

  function sendDatagram (posix: Posix, message: string, waitedMs: number) {
    if (posix.sendDatagram(String(path), message)) return sendNext()
    if (waitedMs === PATIENCE_MS) sayOnce(`${path} takes no message; trying on`)
    setTimeout(sendDatagram, RETRY_MS, posix, message, waitedMs + RETRY_MS).unref()
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
    if (queue.length > 0) sendMessage(queue[0])
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
