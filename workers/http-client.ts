import { createRequire } from 'node:module'
import { clearTimeout, setTimeout } from 'node:timers'
import type { Duplex, Readable } from 'node:stream'

const require = createRequire(import.meta.url)
export const USER_AGENT = 'clusterdeck-probe'
const EXCERPT_CHARS = 200

/** `excerpt`: the first 200 characters of its body, on one line */
export type Answer = { status: number, excerpt: string }
/** `ask` rejects where there is no answer */
export type ProbeClient = { ask: (path: string) => Promise<Answer>, close: () => void }
export type Line = { connect: (alpnProtocol: string) => Duplex, host: string, timeoutMs: number }

export function askOverHttp1 ({ connect, host, timeoutMs }: Line): ProbeClient {
  // In a worker the app has loaded it by now. Loaded earlier, it would make activity.ts take the app for a server.
  const http: typeof import('node:http') = require('node:http')
  // Like most clients, it keeps one connection as long as the app lets it.
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  Object.assign(agent, { createConnection: () => connect('http/1.1') })

  return { ask: (path) =>
    settleWithin(timeoutMs, (done) => {
      const request = http.request({ agent, path, headers: { host, 'user-agent': USER_AGENT, accept: '*/*' } })
      request.on('response', (response) => readAnswer(response, Number(response.statusCode), done))
      request.on('error', done.fail)
      request.end()
      return (error) => request.destroy(error)
    }), close: () => agent.destroy() }
}

type Done = { status: number | null, answer: (answer: Answer) => void, fail: (error: Error) => void }

/** `begin`: returns how to give up */
export function settleWithin (timeoutMs: number, begin: (done: Done) => (error: Error) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const done: Done = { status: null, answer (answer) {
      clearTimeout(timer)
      resolve(answer)
    }, fail (error) {
      clearTimeout(timer)
      reject(error)
    } }
    const timer = setTimeout(() => {
      const what = done.status === null ? 'no answer' : `answered ${done.status}, but not to its end`
      const error = new Error(`${what} within ${timeoutMs} ms`)
      done.fail(error)
      giveUp(error)
    }, timeoutMs)
    const giveUp = begin(done)
  })
}

export function readAnswer (body: Readable, status: number, done: Done) {
  done.status = status
  let excerpt = ''
  body.setEncoding('utf8')
  body.on('data', (text) => {
    if (excerpt.length < EXCERPT_CHARS) excerpt += text
  })
  body.on('end', () => done.answer({ status, excerpt: oneLine(excerpt) }))
  body.on('error', done.fail)
  body.on('close', () => done.fail(new Error(`answered ${status}, but its connection was closed before the end`)))
}

/** `text`: whatever the app says */
function oneLine (text: string) {
  return text.slice(0, EXCERPT_CHARS).replace(/[\s\p{Cc}]+/gu, ' ').trim()
}
