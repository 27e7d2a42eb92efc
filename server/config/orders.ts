import path from 'node:path'
import { z } from 'zod'
import { attempt } from '../errors.ts'
import { DECK_NAME } from './apps.ts'
import { MAX_WORKERS } from './max-workers.ts'
import { STRATEGY } from './options.ts'
import { RELEASE_ID } from './release-id.ts'

const MAX_TEXT = 100_000
const ABSOLUTE = z.string().max(4096).refine(path.isAbsolute)
const MAX_DATA_BYTES = 64 * 1024
/** `shutdown` tells the app to stop, and `NODE_` belongs to Node. */
const MESSAGE_TYPE = /^(?!shutdown$|NODE_)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{1,100}$/

/** The fields of a rollout that is asked for; each kind takes some of them. */
export const ROLLOUT_ORDER = Object.freeze({
  release: z.string().regex(RELEASE_ID).optional().describe('a release such as r12'),
  path: z.string().min(1).max(4096).optional().describe('a folder below releases.root'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters'),
  strategy: STRATEGY.optional().describe('an object')
})

/** A commit that is to be deployed. */
export const COMMIT_ORDER = z.strictObject({
  git: z.string().max(250).regex(/^[^-\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$/).describe(
    'a branch, a tag or a commit of the repository, such as "main"'
  ),
  commit: z.string().regex(/^[0-9a-f]{40,64}$/).optional().describe(
    'the hash of the commit that somebody has seen: it is deployed, also if `git` leads to another one by now'
  ),
  guess: z.boolean().optional().describe(
    'true: where hooks.build is not set, it is built as the lock file and package.json suggest'
  ),
  note: ROLLOUT_ORDER.note,
  strategy: ROLLOUT_ORDER.strategy
}).meta({ examples: [{ git: 'main', guess: true }] })

export const SCALE_ORDER = z.strictObject({
  workers: z.int().min(1).max(MAX_WORKERS).describe(`an integer from 1 to ${MAX_WORKERS}`)
}).meta({ examples: [{ workers: 4 }] })

/** What a host is told of an app that it is to run: how it would be started, and from where. */
export const APP_ORDER = z.strictObject({
  name: z.string().regex(DECK_NAME).optional().describe(
    'what the host calls it; default: its name in the config file, else that of its package or folder'
  ),
  cwd: ABSOLUTE.describe('the working folder, absolute'),
  config: ABSOLUTE.optional().describe('the config file, absolute; default: that of the working folder'),
  app: z.string().regex(DECK_NAME).optional().describe('which app of the config file'),
  flags: z.record(z.string().max(100),
    z.union([z.string().max(MAX_TEXT), z.literal(true), z.array(z.string().max(MAX_TEXT)).max(1000)])).default({})
    .describe('options of "clusterdeck start", by key: { entry: "app.js", workers: "2" }'),
  env: z.record(z.string().regex(/^[^=\0]+$/), z.string().regex(/^[^\0]*$/)).default({}).describe(
    'the environment of the app'
  ),
  dependsOn: z.array(z.string().regex(DECK_NAME)).max(100).default([]).describe(
    'names of apps that have to be ready first'
  )
}).meta({
  examples: [{ cwd: '/srv/shop', flags: { entry: 'app.js', workers: '2' }, env: { PATH: '/usr/bin', PORT: '3000' } }]
})

export type AppOrder = z.infer<typeof APP_ORDER>

/** A message to the app. */
export const MESSAGE_ORDER = z.strictObject({
  type: z.string().regex(MESSAGE_TYPE).describe(
    '1 to 100 characters without control characters, and not a reserved one: shutdown, NODE_…'
  ),
  data: z.unknown().refine(isShortJson).optional().describe('any JSON of at most 64 KiB')
}).meta({ examples: [{ type: 'reload', data: { caches: ['prices'] } }] })

function isShortJson (data: unknown) {
  // TypeError: a function or a circle. RangeError: it is nested too deeply.
  return attempt(() => data === undefined || Buffer.byteLength(JSON.stringify(data)) <= MAX_DATA_BYTES, false)
}
