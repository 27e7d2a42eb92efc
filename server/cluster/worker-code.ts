import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Workers run built files alone, as the Node of their app may be older than ours. build/bundle.ts writes this module anew, as it is beside them then.
const { name } = JSON.parse(readFileSync(new URL('../../dist/bundle.json', import.meta.url), 'utf8'))

/** What is beside the bundles, at the same place in each version. */
export const SCRIPTS = new URL('../../dist/', import.meta.url)
export const WORKER_CODE = fileURLToPath(new URL(`${name}/worker.cjs`, SCRIPTS))
