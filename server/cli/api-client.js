import { text } from 'node:stream/consumers'
import { DeckError } from '../errors.js'
import { formatExactDuration } from '../../public/format.js'
import { sendRequest } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'

/** @typedef {ReturnType<typeof createApiClient>} ApiClient */
/** @typedef {import('node:http').IncomingMessage} Response */
/** @typedef {Pick<import('./find-master.js').Master, 'url' | 'token' | 'fingerprint' | 'recipient' | 'member'>} Addressee */

// For an error whose code this version does not know: the master may be newer.
const CODE_BY_STATUS = Object.freeze(/** @type {Record<number, import('../errors.js').ErrorCode>} */ ({
  401: 'unauthenticated', 403: 'forbidden', 404: 'not-found', 409: 'rollout-running', 412: 'precondition-failed', 422: 'invalid-body', 429: 'rate-limited', 503: 'history-unavailable'
}))

/**
 * Talks to the admin API of a running master, and of the next ones after it. Every failure is a DeckError that says what to do.
 * @param {Addressee} master
 * @param {{ timeoutMs: number, signal?: AbortSignal, findAgain?: () => Promise<Addressee> }} options
 *   `timeoutMs`: for all calls together, from now; `signal`: aborts then, or earlier; `findAgain`: where a master may have followed it
 */
export function createApiClient (master, { timeoutMs, signal = AbortSignal.timeout(timeoutMs), findAgain = async () => master }) {
  return {
    signal,
    /** @param {string} path below /api/v1 */
    get: (path) => call('GET', path),
    /** @param {string} path @param {unknown} [body] */
    post: (path, body) => call('POST', path, body),
    /** Bytes as they come. @param {string} path @param {import('node:stream').Readable} body @param {{ type: string, bytes: number }} what @returns {Promise<any>} */
    upload,
    /** @param {string} path @param {unknown} body */
    put: (path, body) => call('PUT', path, body),
    /** @param {string} path */
    delete: (path) => call('DELETE', path),
    /** Whatever there is at the moment. @param {string} path @param {unknown} body */
    patch: (path, body) => call('PATCH', path, body, { 'if-match': '*' }),
    /** @param {string} path below /api/v1 @returns {Promise<Response>} its body is still to be read */
    download,
    /** A text as it comes. @param {string} path below /api/v1 @param {string} type */
    readText,
    /** Server-sent events, for as long as they come: no time is up. @param {string} path below /api/v1 @param {{ lastEventId?: string }} [from] to go on behind */
    stream
  }

  /** @param {string} method @param {string} path below /api/v1 @param {unknown} [body] @param {Record<string, string>} [more] headers @returns {Promise<any>} */
  async function call (method, path, body, more = {}) {
    try {
      return await readBody(await send(path, {
        method,
        signal,
        headers: body === undefined ? {} : { ...more, 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body)
      }))
    } catch (error) {
      throw explained(error)
    }
  }

  /** @param {string} path @param {import('node:stream').Readable} body @param {{ type: string, bytes: number }} what */
  async function upload (path, body, { type, bytes }) {
    try {
      return await readBody(await send(path, { method: 'POST', signal, headers: { 'content-type': type, 'content-length': String(bytes) }, body }))
    } catch (error) {
      throw explained(error)
    }
  }

  /** @param {string} path @param {string} [type] */
  async function download (path, type = 'application/octet-stream') {
    try {
      const response = await send(path, { signal, headers: { accept: `${type}, application/json;q=0.5` } })
      if (!isOk(response)) await readBody(response)
      return response
    } catch (error) {
      throw explained(error)
    }
  }

  /** @param {string} path @param {string} type @returns {AsyncGenerator<string>} */
  async function * readText (path, type) {
    const response = await download(path, type)
    try {
      yield * response.setEncoding('utf8')
    } catch (error) {
      if (signal.aborted) throw timedOut(timeoutMs)
      throw new DeckError('no-master', `${master.url} has ended its answer before it was whole`, { cause: error })
    }
  }

  /**
   * @param {string} path @param {{ lastEventId?: string }} [from]
   * @returns {AsyncGenerator<{ event: string, data: any, id: string | undefined }>} `data`: undefined where only an id has come
   */
  async function * stream (path, { lastEventId } = {}) {
    try {
      const response = await send(path, { headers: { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) } })
      if (!isOk(response)) await readBody(response)
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const blocks = (rest + chunk).split('\n\n')
        rest = blocks.pop() ?? ''
        yield * blocks.flatMap(toMessage)
      }
    } catch (error) {
      throw explained(error)
    }
  }

  /**
   * To the master that there is now: at the address of one that has ended, somebody else may listen by now.
   * @param {string} path @param {Pick<Parameters<typeof sendRequest>[1], 'method' | 'headers' | 'body' | 'signal'>} what
   */
  async function send (path, { headers, ...what }) {
    if (master.recipient && !isAlive(master.recipient.processes[0])) master = await findAgain()
    const { url, token, fingerprint, recipient, member } = master
    return await sendRequest(`${url}/api/v1${member === undefined ? '' : `/fleet/members/${member}/api`}${path}`, {
      ...what,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'x-clusterdeck-client': 'cli', ...headers },
      fingerprint,
      recipient
    })
  }

  /** @param {Response} response */
  async function readBody (response) {
    const { statusCode: status = 0, headers } = response
    const content = await text(response)
    if (!/^application\/(problem\+)?json\b/.test(headers['content-type'] ?? '')) {
      throw new DeckError('no-master', `${master.url} answers, but not as a clusterdeck master does (HTTP ${status})`)
    }
    const body = JSON.parse(content)
    if (isOk(response)) return body
    throw toDeckError(status, body)
  }

  /** @param {any} error */
  function explained (error) {
    if (error instanceof DeckError) return error
    if (signal.aborted) return timedOut(timeoutMs)
    const reason = error?.code ?? error?.message
    return new DeckError('no-master', `no master answers at ${master.url} (${reason})`, { cause: error })
  }
}

/** @param {Response} response */
function isOk ({ statusCode = 0 }) {
  return statusCode >= 200 && statusCode < 300
}

/** @param {string} block of a stream, WHATWG HTML, 9.2.6 */
function toMessage (block) {
  const field = (/** @type {string} */ name) => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
  const [data, id] = [field('data'), field('id')]
  return data === undefined && id === undefined ? [] : [{ event: field('event') ?? 'message', data: data && JSON.parse(data), id }]
}

/** @param {number} timeoutMs */
export function timedOut (timeoutMs) {
  return new DeckError('timed-out', `not done within ${formatExactDuration(timeoutMs)} (--timeout)`)
}

/** @param {number} status @param {any} problem RFC 9457 */
function toDeckError (status, { code, detail, title }) {
  const message = String(detail ?? title ?? `HTTP ${status}`)
  try {
    return new DeckError(code, message)
  } catch {
    return new DeckError(CODE_BY_STATUS[status] ?? (status < 500 ? 'bad-request' : 'internal'), message)
  }
}
