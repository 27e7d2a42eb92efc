import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Workers and browsers run built files alone, as neither the Node of an app nor a browser need know TypeScript.
// build/bundle.ts writes this module anew, as it is beside them then.
const { name } = JSON.parse(readFileSync(new URL('../../dist/bundle.json', import.meta.url), 'utf8'))

/** What is beside the bundles, at the same place in each version. */
export const SCRIPTS = new URL('../../dist/', import.meta.url)
export const WORKER_CODE = fileURLToPath(new URL(`${name}/worker.cjs`, SCRIPTS))
export const PAGE_CODE = fileURLToPath(new URL(`${name}/public`, SCRIPTS))
