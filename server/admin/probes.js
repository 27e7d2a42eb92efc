import { z } from 'zod'
import { operation } from '../api/endpoint.js'
import { RETRY_AFTER_S } from '../problem.js'

const TEXT = 'text/plain'

/**
 * For load balancers and probes: public, and says nothing but yes or no.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot'> }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function probeResources ({ deck }) {
  return {
    '/healthz': {
      GET: operation({
        name: 'isAlive',
        summary: 'Tells whether the master is running',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ok\n') },
        handle: ({ res }) => { res.type(TEXT).send('ok\n') }
      })
    },

    '/readyz': {
      GET: operation({
        name: 'isReady',
        summary: 'Tells whether every wanted worker is ready or has finished',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ready\n') },
        others: { 503: { [TEXT]: z.literal('not ready\n') } },
        handle ({ res }) {
          const { state, readyWorkers, finishedWorkers, desiredWorkers } = deck.snapshot()
          const isReady = state === 'running' && readyWorkers + finishedWorkers >= desiredWorkers
          if (!isReady) res.set('Retry-After', String(RETRY_AFTER_S))
          res.status(isReady ? 200 : 503).type(TEXT).send(isReady ? 'ready\n' : 'not ready\n')
        }
      })
    }
  }
}
