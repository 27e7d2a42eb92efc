import { z } from 'zod'
import { MAX_WORKERS, STRATEGY } from './options.js'
import { RELEASE_ID } from './release-id.js'

const MAX_DATA_BYTES = 64 * 1024
/** `shutdown` tells the app to stop, and `NODE_` belongs to Node. */
// eslint-disable-next-line no-control-regex
const MESSAGE_TYPE = /^(?!shutdown$|NODE_)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{1,100}$/

/** The fields of a rollout that is asked for; each kind takes some of them. */
export const ROLLOUT_ORDER = Object.freeze({
  release: z.string().regex(RELEASE_ID).optional().describe('a release such as r12'),
  path: z.string().min(1).max(4096).optional().describe('a folder below releases.root'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters'),
  strategy: STRATEGY.optional().describe('an object')
})

export const SCALE_ORDER = z.strictObject({
  workers: z.int().min(1).max(MAX_WORKERS).describe(`an integer from 1 to ${MAX_WORKERS}`)
}).meta({ examples: [{ workers: 4 }] })

/** A message to the app. */
export const MESSAGE_ORDER = z.strictObject({
  type: z.string().regex(MESSAGE_TYPE).describe('1 to 100 characters without control characters, and not a reserved one: shutdown, NODE_…'),
  data: z.unknown().refine(isShortJson).optional().describe('any JSON of at most 64 KiB')
}).meta({ examples: [{ type: 'reload', data: { caches: ['prices'] } }] })

/** @param {unknown} data */
function isShortJson (data) {
  try {
    return data === undefined || Buffer.byteLength(JSON.stringify(data)) <= MAX_DATA_BYTES
  } catch {
    // TypeError: a function or a circle. RangeError: it is nested too deeply.
    return false
  }
}
