import { text } from 'node:stream/consumers'
import { DeckError } from '../errors.js'
import { formatExactDuration } from '../../public/format.js'
import { request } from '../system/http.js'

/** @typedef {ReturnType<typeof createApiClient>} ApiClient */
/** @typedef {import('node:http').IncomingMessage} Response */

// For an error whose code this version does not know: the master may be newer.
const CODE_BY_STATUS = Object.freeze(/** @type {Record<number, import('../errors.js').ErrorCode>} */ ({
  401: 'unauthenticated', 403: 'forbidden', 404: 'not-found', 409: 'rollout-running', 412: 'precondition-failed', 422: 'invalid-body', 429: 'rate-limited', 503: 'history-unavailable'
}))

/**
 * Talks to the admin API of a running master. Every failure is a DeckError that says what to do.
 * @param {{ url: string, token: string, fingerprint?: string | null, member?: string }} master `member`: of its fleet, which is asked by it
 * @param {{ timeoutMs: number, signal?: AbortSignal }} options `timeoutMs`: for all calls together, from now; `signal`: aborts then, or earlier
 */
export function createApiClient ({ url, token, fingerprint = null, member }, { timeoutMs, signal = AbortSignal.timeout(timeoutMs) }) {
  const base = member === undefined ? `${url}/api/v1` : `${url}/api/v1/fleet/members/${member}/api`
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'x-clusterdeck-client': 'cli' }

  return {
    url,
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
      const response = await request(`${base}${path}`, {
        method,
        signal,
        fingerprint,
        headers: body === undefined ? headers : { ...headers, ...more, 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body)
      })
      return await readBody(response)
    } catch (error) {
      throw explained(error)
    }
  }

  /** @param {string} path @param {import('node:stream').Readable} body @param {{ type: string, bytes: number }} what */
  async function upload (path, body, { type, bytes }) {
    try {
      return await readBody(await request(`${url}/api/v1${path}`, { method: 'POST', signal, fingerprint, headers: { ...headers, 'content-type': type, 'content-length': String(bytes) }, body }))
    } catch (error) {
      throw explained(error)
    }
  }

  /** @param {string} path @param {string} [type] */
  async function download (path, type = 'application/octet-stream') {
    try {
      const response = await request(`${base}${path}`, { signal, fingerprint, headers: { ...headers, accept: `${type}, application/json;q=0.5` } })
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
      throw new DeckError('no-master', `${url} has ended its answer before it was whole`, { cause: error })
    }
  }

  /**
   * @param {string} path @param {{ lastEventId?: string }} [from]
   * @returns {AsyncGenerator<{ event: string, data: any, id: string | undefined }>} `data`: undefined where only an id has come
   */
  async function * stream (path, { lastEventId } = {}) {
    try {
      const response = await request(`${base}${path}`, { fingerprint, headers: { ...headers, accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) } })
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

  /** @param {Response} response */
  async function readBody (response) {
    const { statusCode: status = 0, headers } = response
    const content = await text(response)
    if (!/^application\/(problem\+)?json\b/.test(headers['content-type'] ?? '')) {
      throw new DeckError('no-master', `${url} answers, but not as a clusterdeck master does (HTTP ${status})`)
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
    return new DeckError('no-master', `no master answers at ${url} (${reason})`, { cause: error })
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
