import { Router } from 'express'
import { DeckError } from '../../errors.js'
import { createMetrics } from '../metrics.js'

/**
 * For Prometheus, with the token as everything else: `authorization: { credentials_file: …/admin.token }`.
 * @param {{ deck: any }} parts
 */
export function metricsRouter ({ deck }) {
  const router = Router({ caseSensitive: true })
  /** @type {ReturnType<typeof createMetrics> | null} a cluster that nobody scrapes does without */
  let metrics = null

  router.get('/metrics', async (_req, res) => {
    metrics ??= createMetrics({ deck })
    const { contentType, text } = await (await metrics)()
    res.type(contentType).send(text)
  })

  router.all('/metrics', (req) => {
    throw new DeckError('method-not-allowed', `${req.method} is not possible here: expected GET, HEAD`, { details: { allow: 'GET, HEAD' } })
  })

  return router
}
