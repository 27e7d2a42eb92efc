import { createHash } from 'node:crypto'
import { z } from 'zod'
import { attempt, DeckError } from '../errors.ts'
import { toDeckError } from '../problem.ts'
import type { Call, Reply } from './endpoint.ts'
import type { Answers } from '../../db/answers.ts'

/**
 * A request that is repeated because its answer got lost is not done twice (IETF, "Idempotency-Key HTTP Header Field").
 * The first answer is kept in the data folder, also for the next master.
 */
type Outcome = { reply: Reply } | { problem: Pick<DeckError, 'code' | 'message' | 'details'> }
/** `outcome`: as JSON */
type Kept = { request: string, outcome: string, at: number }
export type Idempotency = ReturnType<typeof createIdempotency>

const KEPT_MS = 24 * 60 * 60 * 1000
const MAX_REMEMBERED = 1000
const KEY = /^[!-~]{1,255}$/

export const IDEMPOTENCY_KEY = z.string().regex(KEY).meta({
  description: '1 to 255 visible characters without spaces, chosen by the caller. ' +
    'A request with the same key is done only once; for 24 hours a repeated one gets the first answer',
  examples: ['deploy-2026-01-31-7f3a']
})

export function createIdempotency ({ store, now }: { store: Pick<Answers, 'find' | 'keep'>, now: () => number }) {
  /** by key */
  const remembered: Map<string, Kept> = new Map()
  /** by key: requests that are running */
  const running: Map<string, string> = new Map()

  return {
    /**
     * `work`: undefined: it has answered itself, so there is nothing to keep.
     * @throws {DeckError} bad-request, idempotency-key-in-use, idempotency-key-reused, and what `work` throws
     */
    async once (call: Call, { isSecret = false }: { isSecret?: boolean },
      work: () => Promise<Reply | undefined>): Promise<Reply | undefined>
    {
      const given = call.req.headers['idempotency-key']
      if (given === undefined) return work()
      if (!KEY.test(String(given))) {
        throw new DeckError('bad-request',
          `Idempotency-Key: expected 1 to 255 visible characters without spaces, received ${
            JSON.stringify(String(given).slice(0, 100))
          }`)
      }
      const key = hashOf(ownerOf(call), given)
      const request = hashOf(call.req.method, call.req.originalUrl, JSON.stringify(call.body))
      const kept = running.has(key) ? null : findOutcome(key)
      const known = running.get(key) ?? kept?.request
      if (known !== undefined && known !== request) {
        throw new DeckError('idempotency-key-reused',
          'Idempotency-Key: expected a new key for each request, received the key of another request')
      }
      if (running.has(key))
        throw new DeckError('idempotency-key-in-use', 'This request is already running and has no answer yet')
      if (kept) return toRepeated(JSON.parse(kept.outcome))
      running.set(key, request)
      try {
        return await work().then(keepReply, keepProblem)
      } finally {
        running.delete(key)
      }

      function keepReply (reply: Reply | undefined) {
        if (reply) keepOutcome({ reply })
        return reply
      }

      /** A refusal is kept, too, unless it is only for the moment: then the same request may be tried again. */
      function keepProblem (error: unknown): never {
        const { code, message, details, status } = toDeckError(error)
        if (status !== 503) keepOutcome({ problem: { code, message, details } })
        throw error
      }

      function keepOutcome (outcome: Outcome) {
        storeOutcome(key, { request, outcome: JSON.stringify(outcome), at: now() }, { isSecret })
      }
    }
  }

  function findOutcome (key: string): Kept | null {
    const kept = remembered.get(key) ?? readStored(key)
    return kept && kept.at > now() - KEPT_MS ? kept : null
  }

  function readStored (key: string): Kept | null {
    // The database is away; this master still remembers its own answers.
    return attempt(() => {
      const row = store.find(key)
      return row && { request: row.request, outcome: row.answer, at: row.at }
    })
  }

  function storeOutcome (key: string, kept: Kept, { isSecret }: { isSecret: boolean }) {
    remembered.set(key, kept)
    const [oldest] = remembered.keys()
    if (remembered.size > MAX_REMEMBERED) remembered.delete(oldest)
    if (isSecret) return
    // The database is away: only the next master will not know this answer.
    attempt(() =>
      store.keep({ key, request: kept.request, answer: kept.outcome, at: kept.at }, { oldest: now() - KEPT_MS })
    )
  }
}

/** @throws {DeckError} */
function toRepeated (outcome: Outcome): Reply {
  if ('reply' in outcome)
    return { ...outcome.reply, headers: { ...outcome.reply.headers, 'Idempotency-Replayed': 'true' } }
  const { code, message, details } = outcome.problem
  throw new DeckError(code, message, { details })
}

/**
 * Nobody gets another one's answer, and a session not that to its own token: it may hold a token that no session may
 * make.
 */
function ownerOf ({ auth }: Call) {
  return `${auth && auth.via !== 'token' ? `${auth.via} ` : ''}${auth?.token ?? ''} ${auth?.name ?? ''}`
}

function hashOf (...parts: unknown[]) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
