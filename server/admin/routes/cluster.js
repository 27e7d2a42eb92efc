import { z } from 'zod'
import { DeckError } from '../../errors.js'

const SCALE_BODY = z.strictObject({
  workers: z.int().min(1).max(256).describe('an integer from 1 to 256')
})

/**
 * The cluster as it is, and as it should be.
 * @param {{ deck: { snapshot: () => any, dispatch: (command: any) => any } }} parts
 * @returns {Record<string, import('../endpoint.js').Resource>}
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

    '/scale': {
      PUT: {
        body: SCALE_BODY,
        handle: ({ body, auth }) => ({ body: deck.dispatch({ type: 'scale', workers: body.workers, actor: auth.actor }) })
      }
    },

    '/stop': {
      POST: { handle: ({ auth }) => ({ status: 202, body: deck.dispatch({ type: 'stop', actor: auth.actor }) }) }
    }
  }

  function findWorker (/** @type {number} */ id) {
    const worker = deck.snapshot().workers.find((/** @type {any} */ one) => one.id === id)
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    return worker
  }
}
