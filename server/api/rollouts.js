import { z } from 'zod'
import { DeckError } from '../errors.js'
import { STRATEGY } from '../config/options.js'
import { RELEASE_ID } from '../config/release-id.js'
import { STEERING } from '../config/steering.js'
import { PAGE_QUERY } from './filters.js'
import { durationParam } from './input.js'

/** @typedef {import('../deck.js').RolloutView} RolloutView */

const MAX_WAIT_MS = 5 * 60_000

const ROLLOUT_BODY = z.strictObject({
  kind: z.enum(['restart', 'deploy', 'rollback']).describe('"restart", "deploy" or "rollback"'),
  release: z.string().regex(RELEASE_ID).optional().describe('a release such as r12'),
  path: z.string().min(1).max(4096).optional().describe('a folder below releases.root'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters'),
  strategy: STRATEGY.optional().describe('an object')
}).superRefine(({ kind, release, path, strategy }, context) => {
  const misplaced = { release: release !== undefined && kind !== 'rollback', path: path !== undefined && kind !== 'deploy', strategy: strategy !== undefined && kind === 'restart' }
  for (const [key, isMisplaced] of Object.entries(misplaced)) {
    if (isMisplaced) context.addIssue({ code: 'custom', path: [key], params: { expected: `nothing with kind "${kind}"` } })
  }
})

const ONE_QUERY = z.strictObject({ wait: durationParam(MAX_WAIT_MS) })

/**
 * @param {object} parts
 * @param {Pick<import('../deck.js').Deck, 'snapshot' | 'dispatch' | 'deploy' | 'events'>} parts.deck
 * @param {Pick<import('../../db/history.js').History, 'rollout' | 'rollouts'>} parts.history
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} parts.timers
 * @param {AbortSignal} parts.closing  aborted when the admin port closes
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function rolloutResources ({ deck, history, timers, closing }) {
  return {
    '/rollouts': {
      GET: { query: PAGE_QUERY, handle: ({ query }) => ({ body: history.rollouts(query) }) },
      POST: {
        body: ROLLOUT_BODY,
        async handle ({ body, auth }) {
          const command = { ...body, actor: auth.actor }
          const rollout = body.kind === 'deploy' ? await deck.deploy(command) : deck.dispatch({ type: 'rollout', kind: body.kind, ...command })
          return { status: 202, headers: { Location: `/api/v1/rollouts/${rollout.id}` }, body: rollout }
        }
      }
    },

    ...Object.fromEntries(STEERING.map((type) => [`/rollouts/:id/${type}`, { POST: steering(type) }])),

    '/rollouts/:id': {
      GET: {
        query: ONE_QUERY,
        async handle ({ id, query, req, res }) {
          const rollout = findRollout(id)
          if (query.wait === undefined || req.method === 'HEAD' || !isRunning(id)) return { body: rollout }
          return { body: await untilDone(id, query.wait, res) ?? findRollout(id) }
        }
      }
    }
  }

  /** @param {import('../config/steering.js').Steering} type @returns {import('./endpoint.js').Endpoint} */
  function steering (type) {
    return {
      handle ({ id, auth }) {
        findRollout(id)
        return { body: deck.dispatch({ type, rollout: id, actor: auth.actor }) ?? findRollout(id) }
      }
    }
  }

  // One that an earlier master left behind never gets done: there is nothing to wait for.
  function isRunning (/** @type {number} */ id) {
    return deck.snapshot().rollout?.id === id
  }

  // The running one lives in the snapshot, which knows more than the history does while the database fails.
  function findRollout (/** @type {number} */ id) {
    const running = deck.snapshot().rollout
    const rollout = running?.id === id ? running : history.rollout(id)
    if (!rollout) throw new DeckError('not-found', `Rollout ${id} does not exist or is no longer kept`)
    return rollout
  }

  /**
   * Resolves when the rollout is done, the time is up, the caller has gone or the port closes: whichever is first.
   * @param {number} id @param {number} waitMs @param {import('node:http').ServerResponse} res
   * @returns {Promise<RolloutView | null>} the finished rollout, as told by its last event
   */
  function untilDone (id, waitMs, res) {
    return new Promise((resolve) => {
      const giveUp = () => end(null)
      const timer = timers.setTimeout(giveUp, waitMs)
      const unsubscribe = deck.events.subscribe((event) => {
        if (event.rollout === id && event.detail?.done === true) end(/** @type {RolloutView} */ (event.detail))
      })
      res.once('close', giveUp)
      closing.addEventListener('abort', giveUp)
      if (closing.aborted || res.destroyed) giveUp()

      function end (/** @type {RolloutView | null} */ rollout) {
        timers.clearTimeout(timer)
        unsubscribe()
        res.off('close', giveUp)
        closing.removeEventListener('abort', giveUp)
        resolve(rollout)
      }
    })
  }
}
