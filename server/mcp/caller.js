import { isErrorCode, DeckError } from '../errors.js'

/**
 * Calls the API of this port, or of one app or one member behind it, for whoever asks a tool: what the API checks and refuses is so here.
 * @typedef {ReturnType<typeof createCaller>} Caller
 * @typedef {(order: { method: string, path: string, headers: Record<string, string | undefined>, body?: unknown }) => Promise<{ status: number, headers: import('node:http').IncomingHttpHeaders, body: string }>} Ask
 * @typedef {Record<string, string | number | undefined>} Query
 */

/** @param {Ask} ask @param {string} base  below /api/v1, such as /apps/shop */
export function createCaller (ask, base) {
  return {
    base,

    /** @param {string} path @param {Query} [query] @returns {Promise<any>} JSON, as the API describes it @throws {DeckError} as the API answers */
    get: async (path, query) => (await call('GET', path + queryText(query))).body,

    /** @param {string} path @returns {Promise<string>} the ETag of what there is now */
    tag: async (path) => (await call('GET', path)).tag,

    /** @param {{ method: string, path: string, body?: unknown, headers?: Record<string, string> }} order @returns {Promise<any>} */
    change: async ({ method, path, body, headers }) => (await call(method, path, body, headers)).body
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] */
  async function call (method, path, body, headers = {}) {
    const answer = await ask({ method, path: base + path, headers, body })
    const content = JSON.parse(answer.body)
    if (answer.status < 400) return { body: content, tag: String(answer.headers.etag) }
    throw new DeckError(isErrorCode(content.code) ? content.code : 'bad-request', String(content.detail ?? content.title ?? `HTTP ${answer.status}`))
  }
}

/** @param {Query} [query] */
function queryText (query = {}) {
  /** @type {[string, string][]} */
  const given = Object.entries(query).flatMap(([name, value]) => value === undefined ? [] : [[name, String(value)]])
  const params = new URLSearchParams(given)
  return params.size === 0 ? '' : `?${params}`
}
