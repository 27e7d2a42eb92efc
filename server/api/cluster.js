import { z } from 'zod'
import { DeckError } from '../errors.js'

const SCALE_BODY = z.strictObject({
  workers: z.int().min(1).max(256).describe('an integer from 1 to 256')
})

const UPGRADE_BODY = z.strictObject({
  execPath: z.string().startsWith('/').max(4096).optional().describe('the absolute path of a node binary'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters')
})

/**
 * The cluster as it is, and as it should be.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot' | 'dispatch'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function clusterResources ({ deck }) {
  return {
    '/status': { GET: { handle: () => ({ body: deck.snapshot() }) } },

    '/workers': { GET: { handle: () => ({ body: { items: deck.snapshot().workers } }) } },

    '/workers/:id': { GET: { handle: ({ id }) => ({ body: findWorker(id) }) } },

    '/workers/:id/restart': {
      POST: {
        handle ({ id, auth }) {
          findWorker(id)
          const rollout = deck.dispatch({ type: 'restart-worker', worker: id, actor: auth.actor })
          return { status: 202, headers: { Location: `/api/v1/rollouts/${rollout.id}` }, body: rollout }
        }
      }
    },

    '/workers/:id/kill': {
      POST: {
        handle ({ id, auth }) {
          findWorker(id)
          deck.dispatch({ type: 'kill-worker', worker: id, actor: auth.actor })
          return { status: 202, body: { worker: id } }
        }
      }
    },

    '/scale': {
      PUT: {
        body: SCALE_BODY,
        handle: ({ body, auth }) => ({ body: deck.dispatch({ type: 'scale', workers: body.workers, actor: auth.actor }) })
      }
    },

    '/upgrade': {
      POST: {
        body: UPGRADE_BODY,
        handle ({ body: { execPath = null, note = null }, auth }) {
          // It names a program to run.
          if (auth.via !== 'token') throw new DeckError('forbidden', 'An upgrade requires the token, not a session')
          return { status: 202, body: deck.dispatch({ type: 'upgrade', execPath, note, actor: auth.actor }) }
        }
      }
    },

    '/stop': {
      POST: { handle: ({ auth }) => ({ status: 202, body: deck.dispatch({ type: 'stop', actor: auth.actor }) }) }
    }
  }

  function findWorker (/** @type {number} */ id) {
    const worker = deck.snapshot().workers.find((one) => one.id === id)
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    return worker
  }
}
