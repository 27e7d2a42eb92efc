import { createHash } from 'node:crypto'
import { z } from 'zod'
import { DeckError } from '../errors.js'
import { toDeckError } from './problem.js'

/**
 * A request that is sent again, because its answer got lost, is not done again: the IETF's "Idempotency-Key HTTP Header
 * Field". The first answer is kept, over all masters of a data folder.
 * @typedef {import('./endpoint.js').Call} Call
 * @typedef {import('./endpoint.js').Reply} Reply
 * @typedef {{ reply: Reply } | { problem: Pick<DeckError, 'code' | 'message' | 'details'> }} Outcome
 * @typedef {{ request: string, outcome: string, at: number }} Kept `outcome`: as JSON
 * @typedef {ReturnType<typeof createIdempotency>} Idempotency
 */

const KEPT_MS = 24 * 60 * 60 * 1000
const MAX_REMEMBERED = 1000
const KEY = /^[!-~]{1,255}$/

export const IDEMPOTENCY_KEY = z.string().regex(KEY).meta({
  description: 'any text of 1 to 255 visible characters without spaces, of the caller\'s own: the same request with the same key is done once, and answered as the first time for 24 hours', examples: ['deploy-2026-01-31-7f3a']
})

/**
 * @param {object} parts
 * @param {Pick<import('../../db/answers.js').Answers, 'find' | 'keep'>} parts.store
 * @param {() => number} parts.now
 */
export function createIdempotency ({ store, now }) {
  /** @type {Map<string, Kept>} by key */
  const remembered = new Map()
  /** @type {Map<string, string>} by key: what is asked for at the moment */
  const running = new Map()

  return {
    /**
     * @param {Call} call @param {{ isSecret?: boolean }} operation
     * @param {() => Promise<Reply>} work
     * @returns {Promise<Reply>}
     * @throws {DeckError} bad-request, idempotency-key-in-use, idempotency-key-reused, and what `work` throws
     */
    async once (call, { isSecret = false }, work) {
      const given = call.req.headers['idempotency-key']
      if (given === undefined) return work()
      if (!KEY.test(String(given))) throw new DeckError('bad-request', `Idempotency-Key: expected 1 to 255 visible characters without spaces, received ${JSON.stringify(String(given).slice(0, 100))}`)
      const key = hashOf(ownerOf(call), given)
      const request = hashOf(call.req.method, call.req.originalUrl, JSON.stringify(call.body))
      const kept = running.has(key) ? null : find(key)
      const known = running.get(key) ?? kept?.request
      if (known !== undefined && known !== request) throw new DeckError('idempotency-key-reused', 'Idempotency-Key: expected one for each request, received the key of another one')
      if (running.has(key)) throw new DeckError('idempotency-key-in-use', 'this request runs already: its answer is not there yet')
      if (kept) return repeated(JSON.parse(kept.outcome))
      running.set(key, request)
      try {
        return await work().then(keepReply, keepProblem)
      } finally {
        running.delete(key)
      }

      /** @param {Reply} reply */
      function keepReply (reply) {
        keep({ reply })
        return reply
      }

      /** A refusal is an answer too, except where nothing could be done at the moment: then the same request may be tried again. @param {unknown} error @returns {never} */
      function keepProblem (error) {
        const { code, message, details, status } = toDeckError(error)
        if (status !== 503) keep({ problem: { code, message, details } })
        throw error
      }

      /** @param {Outcome} outcome */
      function keep (outcome) {
        remember(key, { request, outcome: JSON.stringify(outcome), at: now() }, { isSecret })
      }
    }
  }

  /** @param {string} key @returns {Kept | null} */
  function find (key) {
    const kept = remembered.get(key) ?? stored(key)
    return kept && kept.at > now() - KEPT_MS ? kept : null
  }

  /** @param {string} key @returns {Kept | null} */
  function stored (key) {
    try {
      const row = store.find(key)
      return row && { request: row.request, outcome: row.answer, at: row.at }
    } catch {
      // The database is away: what this master has answered is remembered all the same.
      return null
    }
  }

  /** @param {string} key @param {Kept} kept @param {{ isSecret: boolean }} how */
  function remember (key, kept, { isSecret }) {
    remembered.set(key, kept)
    if (remembered.size > MAX_REMEMBERED) remembered.delete(/** @type {string} */ (remembered.keys().next().value))
    if (isSecret) return
    try {
      store.keep({ key, request: kept.request, answer: kept.outcome, at: kept.at }, { oldest: now() - KEPT_MS })
    } catch {
      // As above: only the next master would miss it.
    }
  }
}

/** @param {Outcome} outcome @returns {Reply} @throws {DeckError} */
function repeated (outcome) {
  if ('reply' in outcome) return { headers: { ...outcome.reply.headers, 'Idempotency-Replayed': 'true' }, body: outcome.reply.body }
  const { code, message, details } = outcome.problem
  throw new DeckError(code, message, { details })
}

/** Nobody gets another one's answer, and a session not that to its own token: it may hold a token that no session may make. @param {Call} call */
function ownerOf ({ auth }) {
  return `${auth && auth.via !== 'token' ? `${auth.via} ` : ''}${auth?.token ?? ''} ${auth?.name ?? ''}`
}

/** @param {unknown[]} parts */
function hashOf (...parts) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
