import { Router } from 'express'

/**
 * For load balancers and probes: public, and says nothing but yes or no.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot'> }} parts
 */
export function healthRouter ({ deck }) {
  const router = Router({ caseSensitive: true })

  router.get('/healthz', (_req, res) => { res.type('text/plain').send('ok\n') })

  router.get('/readyz', (_req, res) => {
    const { state, readyWorkers, desiredWorkers } = deck.snapshot()
    const isReady = state === 'running' && readyWorkers >= desiredWorkers
    res.status(isReady ? 200 : 503).type('text/plain').send(isReady ? 'ready\n' : 'not ready\n')
  })

  return router
}
