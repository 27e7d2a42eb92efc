import { readdir, readFile, readlink } from 'node:fs/promises'
import { once } from 'node:events'
import http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { errorText } from '../errors.ts'
import type { Debugger } from 'node:inspector'

/*
 * How to see where a loop is stuck. Tried on Node 20: a diagnostic report on a signal is written by JavaScript, so not
 * in a loop that is stuck; a thread beside the main one that could pause it costs 12 MB in every worker all the time.
 * SIGUSR1 costs nothing until it is sent: Node's own signal thread opens the inspector, whatever the main thread does,
 * and a pause reaches a busy loop and a regular expression alike. For as long as that takes, about 50 ms, any user of
 * this machine who finds the random port on the loopback address could talk to the inspector too; the process is killed
 * right after.
 * `watchdog.stack: 'off'` is for machines where that is too much.
 */

type Captured = { stack: string | null, reason: string | null, answer: unknown }

const POLL_MS = 10
const MAX_FRAMES = 50
const MAX_CHARS = 16_384
const NATIVE = 'the main thread is in native code, such as a call of the system that blocks'
const LOOPBACK = '0100007F'
const LISTENS = '0A'

/**
 * @param pid a process of Node that is stuck, and will be killed afterwards
 * @param limits for all of it
 * @param ask an expression in which `req` is the request that its code answers just now; null: which one is not known
 * @returns frames as in an error's stack, or why there are none, and what was answered; never throws
 */
export async function captureStack (pid: number | undefined,
  { withinMs, ask = null }: { withinMs: number, ask?: string | null }): Promise<Captured>
{
  if (process.platform !== 'linux' || pid === undefined) return noStack('it can only be read on Linux')
  const until = performance.now() + withinMs
  try {
    if (await stateOf(pid) === 'T') return noStack('the process is stopped by a signal')
    const before = new Set((await listeningPorts(pid)).keys())
    process.kill(pid, 'SIGUSR1')
    const port = await inspectorPort(pid, before, until)
    if (port === null) return noStack(`${NATIVE}, or the app handles SIGUSR1 itself`)
    const seen = await pauseAndLook(port, { until, ask })
    return seen ? { stack: formatFrames(seen.frames), reason: null, answer: seen.answer } : noStack(NATIVE)
  } catch (error) {
    return noStack(errorText(error))
  }
}

function noStack (reason: string): Captured {
  return { stack: null, reason, answer: null }
}

async function stateOf (pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  return stat[stat.lastIndexOf(')') + 2]
}

/** @returns ports on the loopback address by the socket's inode, of all processes */
async function listeningPorts (pid: number): Promise<Map<string, number>> {
  const rows = (await readFile(`/proc/${pid}/net/tcp`, 'utf8')).split('\n').map((line) => line.trim().split(/\s+/))
  return new Map(
    rows.filter(([, local, , state]) => state === LISTENS && local.startsWith(LOOPBACK)).map((
      fields
    ) => [fields[9], parseInt(fields[1].split(':')[1], 16)])
  )
}

/** `before`: inodes that are not meant */
async function inspectorPort (pid: number, before: Set<string>, until: number) {
  for (; performance.now() < until; await wait(POLL_MS)) {
    const added = new Map([...await listeningPorts(pid)].filter(([inode]) => !before.has(inode)))
    if (added.size === 0) continue
    // Newest first: the sockets of other processes are not ours to talk to.
    for (const fd of (await readdir(`/proc/${pid}/fd`)).reverse()) {
      const link = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
      const port = added.get(link.slice('socket:['.length, -1))
      if (port !== undefined) return port
    }
  }
  return null
}

/** @returns frames: top first */
async function pauseAndLook (port: number,
  { until, ask }: { until: number, ask: string | null }): Promise<{ frames: CallFrame[], answer: unknown } | null>
{
  const leftMs = () => Math.max(1, until - performance.now())
  const [{ webSocketDebuggerUrl }] = await getTargets(`http://127.0.0.1:${port}/json/list`, leftMs())
  const { WebSocket } = await import('ws')
  const inspector = new WebSocket(`ws://127.0.0.1:${port}${new URL(webSocketDebuggerUrl).pathname}`, {
    handshakeTimeout: leftMs(),
    perMessageDeflate: false
  })
  try {
    await once(inspector, 'open')
    const urls: Map<string, string> = new Map()
    /** by the id of what was asked */
    const waiting: Map<number, (result: Result) => void> = new Map()
    const { promise: paused, resolve: pause }: PromiseWithResolvers<CallFrame[]> = Promise.withResolvers()
    inspector.on('message', (text) => {
      const { id, result, method, params } = JSON.parse(String(text))
      waiting.get(id)?.(result?.result)
      if (method === 'Debugger.scriptParsed') urls.set(params.scriptId, params.url)
      if (method === 'Debugger.paused')
        pause(
          params.callFrames.map((frame: CallFrame) => ({ ...frame,
            url: frame.url || urls.get(frame.location.scriptId) })
          )
        )
    })
    let lastId = 0
    const call = (method: string, params = {}) => {
      const id = ++lastId
      inspector.send(JSON.stringify({ id, method, params }))
      return Promise.race([new Promise<Result>((resolve) => waiting.set(id, resolve)),
        wait(leftMs(), undefined, { ref: false })])
    }
    call('Debugger.enable')
    call('Debugger.pause')
    const frames = await Promise.race([paused, wait(leftMs(), null, { ref: false })])
    return frames && { frames, answer: ask === null ? null : await askFor(ask, frames, call) }
  } finally {
    // ECONNRESET: the process was killed meanwhile.
    inspector.on('error', () => {}).terminate()
  }
}

/** Node calls the handlers of a request in a function of its own that names it, and sees no global from there. */
async function askFor (ask: string, frames: CallFrame[],
  call: (method: string, params: object) => Promise<Result>): Promise<unknown>
{
  const handler = frames.find(({ functionName, url }) =>
    functionName === 'parserOnIncoming' && url === 'node:_http_server'
  )
  const request = handler &&
    await call('Debugger.evaluateOnCallFrame', { callFrameId: handler.callFrameId, expression: 'req' })
  const answer = request?.objectId
    ? await call('Runtime.callFunctionOn', { objectId: request.objectId, returnByValue: true,
      functionDeclaration: `function () { const req = this; return ${ask} }` })
    : await call('Runtime.evaluate', { expression: `{ const req = null; ${ask} }`, returnByValue: true })
  return answer?.value ?? null
}

type Result = { objectId?: string, value?: unknown } | undefined
type CallFrame = Debugger.CallFrame

/** `frames`: the inspector protocol counts lines and columns from 0 */
function formatFrames (frames: CallFrame[]) {
  return frames.slice(0, MAX_FRAMES).map(({ functionName, url, location }) => {
    const where = `${url || '<anonymous>'}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`
    return functionName ? `    at ${functionName} (${where})` : `    at ${where}`
  }).join('\n').slice(0, MAX_CHARS)
}

/** @returns the targets of an inspector */
function getTargets (url: string, timeoutMs: number): Promise<{ webSocketDebuggerUrl: string }[]> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent: false, timeout: timeoutMs }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('error', reject).on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => {
        try {
          resolve(JSON.parse(text))
        } catch (error) {
          reject(error)
        }
      })
    }).on('timeout', () => request.destroy(new Error('the inspector does not answer'))).on('error', reject)
  })
}
