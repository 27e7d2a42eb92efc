import { isErrorCode, DeckError } from '../errors.ts'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Calls the API of this port, or of one app or one member behind it, for whoever asks a tool: what the API checks and
 * refuses is so here.
 */
export type Caller = ReturnType<typeof createCaller>
export type Ask = (
  order: { method: string, path: string, headers: Record<string, string | undefined>, body?: unknown }
) => Promise<{ status: number, headers: IncomingHttpHeaders, body: string }>
type Query = Record<string, unknown>

/** `base`: below /api/v1, such as /apps/shop */
export function createCaller (ask: Ask, base: string) {
  return {
    base,

    /**
     * @returns JSON, as the API describes it: nothing checks that but the path
     * @throws {DeckError} as the API answers
     */
    get: async <Answer>(path: string, query?: Query): Promise<Answer> =>
      (await call('GET', path + queryText(query))).body,

    /** @returns the ETag of what there is now */
    tag: async (path: string): Promise<string> => (await call('GET', path)).tag,

    change: async <Answer>(
      { method, path, body, headers }: { method: string, path: string, body?: unknown,
        headers?: Record<string, string> }
    ): Promise<Answer> => (await call(method, path, body, headers)).body
  }

  async function call (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = await ask({ method, path: base + path, headers, body })
    const content = JSON.parse(answer.body)
    if (answer.status < 400) return { body: content, tag: String(answer.headers.etag) }
    throw new DeckError(isErrorCode(content.code) ? content.code : 'bad-request',
      String(content.detail ?? content.title ?? `HTTP ${answer.status}`))
  }
}

function queryText (query: Query = {}) {
  const given: [string, string][] = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]]
  )
  const params = new URLSearchParams(given)
  return params.size === 0 ? '' : `?${params}`
}
