import { text } from 'node:stream/consumers'
import { DeckError, errorCode, errorText, isErrorCode } from '../errors.js'
import { formatExactDuration } from '../../public/format.js'
import { sendRequest } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'

/** @typedef {ReturnType<typeof createApiClient>} ApiClient */
/** @typedef {import('node:http').IncomingMessage} Response */
/** @typedef {Pick<Parameters<typeof sendRequest>[1], 'method' | 'headers' | 'body' | 'signal'>} What */
/** @typedef {Pick<import('./find-master.js').Master, 'url' | 'token' | 'fingerprint' | 'recipient' | 'member'> & { agent?: import('node:http').Agent }} Addressee `agent`: keeps connections to it */

/** For a code that this version does not know: the master may be newer. @type {Readonly<Record<number, import('../errors.js').ErrorCode>>} */
const CODE_BY_STATUS = Object.freeze({
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not-found',
  409: 'rollout-running',
  412: 'precondition-failed',
  422: 'invalid-body',
  429: 'rate-limited',
  503: 'history-unavailable'
})

/**
 * Calls the admin API of a running master, and of the masters that follow it. Every failure is a DeckError that says what to do.
 * @param {Addressee} master
 * @param {{ timeoutMs: number, signal?: AbortSignal, findAgain?: () => Promise<Addressee> }} options
 *   `timeoutMs`: for all calls together, from now; `signal`: aborts then or earlier; `findAgain`: finds the next master
 */
export function createApiClient (master, { timeoutMs, signal = AbortSignal.timeout(timeoutMs), findAgain = async () => master }) {
  return {
    signal,
    /** @param {string} path below /api/v1 */
    get: (path) => callApi('GET', path),
    /** @param {string} path @param {unknown} [body] */
    post: (path, body) => callApi('POST', path, body),
    upload: uploadBody,
    /** @param {string} path @param {unknown} body */
    put: (path, body) => callApi('PUT', path, body),
    /** @param {string} path */
    delete: (path) => callApi('DELETE', path),
    /** Changes whatever the current version is. @param {string} path @param {unknown} body */
    patch: (path, body) => callApi('PATCH', path, body, { 'if-match': '*' }),
    download: openDownload,
    readText,
    stream: streamEvents
  }

  /** @param {string} method @param {string} path below /api/v1 @param {unknown} [body] @param {Record<string, string>} [headers] */
  async function callApi (method, path, body, headers = {}) {
    if (body === undefined) return await readAnswer(path, { method, headers: {} })
    return await readAnswer(path, { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) })
  }

  /** @param {string} path below /api/v1 @param {Omit<What, 'signal'>} what @returns {Promise<any>} JSON, as the API describes it */
  async function readAnswer (path, what) {
    try {
      return await readBody(await sendToMaster(path, { ...what, signal }))
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /** @param {string} path below /api/v1 @param {import('node:stream').Readable} body @param {{ type: string, bytes: number }} what */
  async function uploadBody (path, body, { type, bytes }) {
    return await readAnswer(path, { method: 'POST', headers: { 'content-type': type, 'content-length': String(bytes) }, body })
  }

  /** @param {string} path below /api/v1 @param {string} [type] @returns {Promise<Response>} its body is still to be read */
  async function openDownload (path, type = 'application/octet-stream') {
    try {
      const response = await sendToMaster(path, { signal, headers: { accept: `${type}, application/json;q=0.5` } })
      if (!isOk(response)) await readBody(response)
      return response
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /** Yields a text as it comes. @param {string} path below /api/v1 @param {string} type @returns {AsyncGenerator<string>} */
  async function * readText (path, type) {
    const response = await openDownload(path, type)
    try {
      yield * response.setEncoding('utf8')
    } catch (error) {
      if (signal.aborted) throw timedOut(timeoutMs)
      throw new DeckError('no-master', `${master.url} closed the connection in the middle of its answer`, { cause: error })
    }
  }

  /**
   * Yields server-sent events for as long as they come; the timeout does not count.
   * @param {string} path below /api/v1 @param {{ lastEventId?: string, until?: AbortSignal }} [from] `lastEventId`: continues after this event
   * @returns {AsyncGenerator<{ event: string, data: any, id: string | undefined }>} `data`: undefined where only an id has come
   */
  async function * streamEvents (path, { lastEventId, until } = {}) {
    /** @type {Record<string, string>} */
    const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    try {
      const response = await sendToMaster(path, { headers: { accept: 'text/event-stream', ...resume }, signal: until })
      if (!isOk(response)) await readBody(response)
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const blocks = (rest + chunk).split('\n\n')
        rest = blocks.pop() ?? ''
        yield * blocks.flatMap(toMessage)
      }
    } catch (error) {
      throw errorOfCall(error)
    }
  }

  /**
   * Sends a request to the current master. At the address of an ended one, another program may listen by now.
   * @param {string} path @param {What} what
   */
  async function sendToMaster (path, { headers, ...what }) {
    if (master.recipient && !isAlive(master.recipient.processes[0])) master = await findAgain()
    const { url, token, fingerprint, recipient, member, agent } = master
    return await sendRequest(`${url}/api/v1${member === undefined ? '' : `/fleet/members/${member}/api`}${path}`, {
      ...what,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'x-clusterdeck-client': 'cli', ...headers },
      fingerprint,
      recipient,
      agent
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
    throw errorOfProblem(status, body)
  }

  /** @param {unknown} error */
  function errorOfCall (error) {
    if (error instanceof DeckError) return error
    if (signal.aborted) return timedOut(timeoutMs)
    return new DeckError('no-master', `no master answers at ${master.url} (${errorCode(error) ?? errorText(error)})`, { cause: error })
  }
}

/** @param {Response} response */
function isOk ({ statusCode = 0 }) {
  return statusCode >= 200 && statusCode < 300
}

/** @param {string} block of a stream, WHATWG HTML, 9.2.6 */
function toMessage (block) {
  const fieldOf = (/** @type {string} */ name) => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
  const [data, id] = [fieldOf('data'), fieldOf('id')]
  return data === undefined && id === undefined ? [] : [{ event: fieldOf('event') ?? 'message', data: data && JSON.parse(data), id }]
}

/** @param {number} timeoutMs */
export function timedOut (timeoutMs) {
  return new DeckError('timed-out', `not done within ${formatExactDuration(timeoutMs)} (--timeout)`)
}

/** @param {number} status @param {Partial<Record<'code' | 'detail' | 'title', unknown>>} problem RFC 9457 */
function errorOfProblem (status, { code, detail, title }) {
  const message = String(detail ?? title ?? `HTTP ${status}`)
  return new DeckError(isErrorCode(code) ? code : CODE_BY_STATUS[status] ?? (status < 500 ? 'bad-request' : 'internal'), message)
}
