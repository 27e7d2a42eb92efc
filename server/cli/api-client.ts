import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError, errorReason, isErrorCode, type ErrorCode } from '../errors.ts'
import { formatExactDuration } from '../../public/format.ts'
import { sendRequest } from '../system/http.ts'
import { isAlive } from '../system/process-identity.ts'
import type { Agent, IncomingMessage as Response } from 'node:http'
import type { Readable } from 'node:stream'
import type { Master } from './find-master.ts'

/** Methods that no host passes on to another one: what they change needs an admin there. */
const CLOSED_TO_OTHERS = new Set(['PATCH', 'DELETE'])

/** What a stream of server-sent events sends. */
export type Message = { event: string, data: unknown, id: string | undefined }
export type ApiClient = ReturnType<typeof createApiClient>
/** until when something is waited for; `timeoutMs`: for messages */
export type Deadline = Pick<ApiClient, 'signal' | 'timeoutMs'>
type What = Pick<Parameters<typeof sendRequest>[1], 'method' | 'headers' | 'body' | 'signal'>
/** `agent`: keeps connections to it */
type Addressee =
  & Pick<Master, 'url' | 'token' | 'fingerprint' | 'recipient' | 'member' | 'below'>
  & { agent?: Agent }

const POLL_MS = 100
/** How long the next master is looked for. */
const RECONNECT_WITHIN_MS = 10_000
const RECONNECT_EVERY_MS = 250

/** For a code that this version does not know: the master may be newer. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = Object.freeze({ 401: 'unauthenticated', 403: 'forbidden',
  404: 'not-found', 409: 'rollout-running', 412: 'precondition-failed', 422: 'invalid-body', 429: 'rate-limited',
  503: 'history-unavailable' })

/**
 * Calls the admin API of a running master, and of the masters that follow it. Every failure is a DeckError that says
 * what to do.
 * @param options `timeoutMs`: for all calls together, from now; `signal`: aborts then or earlier; `findAgain`: finds
 * the next master
 */
export function createApiClient (master: Addressee,
  { timeoutMs, signal = AbortSignal.timeout(timeoutMs), findAgain = async () => master }: { timeoutMs: number,
    signal?: AbortSignal, findAgain?: () => Promise<Addressee> })
{
  return {
    signal,
    timeoutMs,
    call: callApi,
    /** `path`: below /api/v1 */
    get: <Answer>(path: string) => callApi<Answer>('GET', path),
    post: <Answer>(path: string, body?: unknown) => callApi<Answer>('POST', path, body),
    upload: uploadBody,
    put: <Answer>(path: string, body: unknown) => callApi<Answer>('PUT', path, body),
    delete: <Answer>(path: string) => callApi<Answer>('DELETE', path),
    /** Changes whatever the current version is. */
    patch: <Answer>(path: string, body: unknown) => callApi<Answer>('PATCH', path, body, { 'if-match': '*' }),
    download: openDownload,
    readText,
    stream: streamEvents
  }

  /** `path`: below /api/v1 */
  async function callApi<Answer> (method: string, path: string, body?: unknown,
    headers: Record<string, string> = {}): Promise<Answer>
  {
    if (body === undefined) return await readAnswer(path, { method, headers: {} })
    return await readAnswer(path, { method, headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body) })
  }

  /** `path`: below /api/v1 @returns JSON, as the API describes it: nothing checks that but the path */
  async function readAnswer<Answer> (path: string, what: Omit<What, 'signal'>): Promise<Answer> {
    try {
      return await readBody(await sendToMaster(path, { ...what, signal }))
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /** `path`: below /api/v1 */
  async function uploadBody (path: string, body: Readable, { type, bytes }: { type: string, bytes: number }) {
    return await readAnswer(path, { method: 'POST', headers: { 'content-type': type, 'content-length': String(bytes) },
      body })
  }

  /** `path`: below /api/v1. Returns its body is still to be read. */
  async function openDownload (path: string, type: string = 'application/octet-stream'): Promise<Response> {
    try {
      const response = await sendToMaster(path, { signal, headers: { accept: `${type}, application/json;q=0.5` } })
      if (!isOk(response)) await readBody(response)
      return response
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /** Yields a text as it comes. `path`: below /api/v1. */
  async function* readText (path: string, type: string): AsyncGenerator<string> {
    const response = await openDownload(path, type)
    try {
      yield* response.setEncoding('utf8')
    } catch (error) {
      if (signal.aborted) throw timedOut(timeoutMs)
      throw new DeckError('no-master', `${master.url} closed the connection in the middle of its answer`, {
        cause: error
      })
    }
  }

  /**
   * Yields server-sent events for as long as they come; the timeout does not count. `path`: below /api/v1;
   * `lastEventId`: continues after this event. Returns `data`: undefined where only an id has come.
   */
  async function* streamEvents (path: string,
    { lastEventId, until }: { lastEventId?: string, until?: AbortSignal } = {}): AsyncGenerator<Message>
  {
    const resume: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    try {
      const response = await sendToMaster(path, { headers: { accept: 'text/event-stream', ...resume }, signal: until })
      if (!isOk(response)) await readBody(response)
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const blocks = (rest + chunk).split('\n\n')
        rest = blocks.pop() ?? ''
        yield* blocks.flatMap(toMessage)
      }
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /** Sends a request to the current master. At the address of an ended one, another program may listen by now. */
  async function sendToMaster (path: string, { headers, ...what }: What) {
    if (master.recipient && !isAlive(master.recipient.processes[0])) master = await findAgain()
    const { url, token, fingerprint, recipient, member, agent, below = '' } = master
    if (member !== undefined && CLOSED_TO_OTHERS.has(String(what.method))) {
      throw new DeckError('forbidden',
        `settings, alerts and files of ${member} are changed there alone: name it by --url, with a token of its own, in place of --member`)
    }
    const start = member === undefined ? below : `/fleet/members/${member}/api`
    return await sendRequest(`${url}/api/v1${start}${path}`, { ...what,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'x-clusterdeck-client': 'cli',
        ...headers }, fingerprint, recipient, agent })
  }

  async function readBody (response: Response) {
    const { statusCode: status = 0, headers } = response
    const content = await text(response)
    if (!/^application\/(problem\+)?json\b/.test(headers['content-type'] ?? ''))
      throw new DeckError('no-master', `${master.url} answers, but not as a clusterdeck master does (HTTP ${status})`)
    const body = JSON.parse(content)
    if (isOk(response)) return body
    throw errorOfProblem(status, body)
  }

  function errorOfCall (error: unknown) {
    if (error instanceof DeckError) return error
    if (signal.aborted) return timedOut(timeoutMs)
    return new DeckError('no-master', `no master answers at ${master.url} (${errorReason(error)})`, { cause: error })
  }
}

function isOk ({ statusCode = 0 }: Response) {
  return statusCode >= 200 && statusCode < 300
}

/** `block`: of a stream, WHATWG HTML, 9.2.6 */
function toMessage (block: string) {
  const fieldOf = (name: string) =>
    block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
  const [data, id] = [fieldOf('data'), fieldOf('id')]
  return data === undefined && id === undefined
    ? []
    : [{ event: fieldOf('event') ?? 'message', data: data && JSON.parse(data), id }]
}

/** `problem`: RFC 9457 */
function errorOfProblem (status: number,
  { code, detail, title }: Partial<Record<'code' | 'detail' | 'title', unknown>>)
{
  const message = String(detail ?? title ?? `HTTP ${status}`)
  return new DeckError(isErrorCode(code) ? code : CODE_BY_STATUS[status] ?? (status < 500 ? 'bad-request' : 'internal'),
    message)
}

/** For `.catch`: null in place of an error with one of these codes, or where none is named with any code of ours. */
export function nullOn (...codes: ErrorCode[]): (error: unknown) => null {
  return (error) => {
    if (error instanceof DeckError && (codes.length === 0 || codes.includes(error.code))) return null
    throw error
  }
}

/** @throws {DeckError} timed-out */
export async function waitUntil (isDone: () => boolean | Promise<boolean>, { signal, timeoutMs }: Deadline) {
  while (!await isDone()) {
    if (signal.aborted) throw timedOut(timeoutMs)
    await wait(POLL_MS)
  }
}

function timedOut (timeoutMs: number) {
  return new DeckError('timed-out', `not done within ${formatExactDuration(timeoutMs)} (--timeout)`)
}

/**
 * Yields what a stream sends, and goes on with the next master behind what this one has sent, until no master comes any
 * more. `open`: behind the message of that id; `hasAnswered`: a master has been there just now
 * @throws {DeckError} no-master; else as the API client does
 */
export async function* streamAgain<Item extends { id: string | undefined }> (
  open: (lastEventId: string | undefined) => AsyncIterable<Item>,
  { hasAnswered }: { hasAnswered: boolean }
): AsyncGenerator<Item> {
  let place: string | undefined
  /** null: a master answers */
  let lostAt: number | null = hasAnswered ? null : -Infinity
  for (;;) {
    try {
      for await (const item of open(place)) {
        lostAt = null
        yield item
        place = item.id ?? place
      }
    } catch (error) {
      const isLate = lostAt !== null && performance.now() - lostAt > RECONNECT_WITHIN_MS
      if (!(error instanceof DeckError && error.code === 'no-master') || isLate) throw error
    }
    lostAt ??= performance.now()
    await wait(RECONNECT_EVERY_MS)
  }
}
