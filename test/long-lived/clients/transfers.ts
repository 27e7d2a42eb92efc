import http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { errorReason } from '../../../server/errors.ts'

const EVERY_MS = 100
const CHUNK = Buffer.alloc(8192, '.')

export type Outcome = { kind: string, failure: string | null, seconds: number, longestSilenceMs: number }
type How = { port: number, ms: number }

/** A request body that is sent slowly, the way a camera or a phone would. */
export function upload (how: How): Promise<Outcome> {
  return watch('upload', how, { method: 'POST', path: '/upload' }, async (request, isOver) => {
    let sent = 0
    for (const end = performance.now() + how.ms; performance.now() < end && !isOver(); sent += CHUNK.length) {
      request.write(CHUNK)
      await wait(EVERY_MS)
    }
    request.end()
    return (text) =>
      text === `${sent} bytes` ? null : `${sent} bytes were sent, the answer is ${JSON.stringify(text.slice(0, 40))}`
  })
}

/** A large file on a slow line. */
export function download (how: How): Promise<Outcome> {
  return watch('download', how, { path: `/download?ms=${how.ms}` }, expectEnd)
}

/** What a page listens to. */
export function eventStream (how: How): Promise<Outcome> {
  return watch('event stream', how, { path: `/events?ms=${how.ms}` }, async (request) => {
    await expectEnd(request)
    return (text) => {
      const ids = [...text.matchAll(/^id: (\d+)$/mg)].map(([, id]) => Number(id))
      return ids.every((id, index) => id === index) && text.endsWith('end') ? null : `ended after event ${ids.at(-1)}`
    }
  })
}

/** One whose client has gone without a word: nothing of its body comes any more. */
export function stalledUpload (how: How): Promise<Outcome> {
  return watch('stalled upload', how, { method: 'POST', path: '/upload' }, async (request) => {
    request.write(CHUNK)
    return () => null
  })
}

async function expectEnd (request: http.ClientRequest) {
  request.end()
  return (text: string) => text.endsWith('end') ? null : `ended after ${text.length} bytes`
}

/** `send`: returns what is wrong with an answer */
async function watch (kind: string, { port }: How, options: http.RequestOptions,
  send: (request: http.ClientRequest, isOver: () => boolean) => Promise<(text: string) => string | null>
): Promise<Outcome> {
  const begunAt = performance.now()
  let [heardAt, longestSilenceMs, isOver] = [0, 0, false]
  const request = http.request({ host: '127.0.0.1', port, agent: false, ...options })
  const answered = new Promise<{ text: string } | { error: string }>((resolve) => {
    request.on('error', (error) => resolve({ error: errorReason(error) }))
    request.on('response', (response) => {
      let text = ''
      heardAt = performance.now()
      response.setEncoding('latin1').on('error', (error) => resolve({ error: errorReason(error) })).on('end',
        () => resolve({ text }))
      response.on('data', (data) => {
        longestSilenceMs = Math.max(longestSilenceMs, performance.now() - heardAt)
        heardAt = performance.now()
        text += data
      })
    })
  }).finally(() => {
    isOver = true
  })
  const [flaw, answer] = await Promise.all([send(request, () => isOver), answered])
  const failure = 'error' in answer ? answer.error : flaw(answer.text)
  return { kind, failure, seconds: (performance.now() - begunAt) / 1000, longestSilenceMs }
}
