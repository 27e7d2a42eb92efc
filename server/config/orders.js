import { z } from 'zod'
import { MAX_WORKERS, STRATEGY } from './options.js'
import { RELEASE_ID } from './release-id.js'

/** What can be said of a rollout, each of its kinds taking some of it. */
export const ROLLOUT_ORDER = Object.freeze({
  release: z.string().regex(RELEASE_ID).optional().describe('a release such as r12'),
  path: z.string().min(1).max(4096).optional().describe('a folder below releases.root'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters'),
  strategy: STRATEGY.optional().describe('an object')
})

export const SCALE_ORDER = z.strictObject({
  workers: z.int().min(1).max(MAX_WORKERS).describe(`an integer from 1 to ${MAX_WORKERS}`)
}).meta({ examples: [{ workers: 4 }] })
