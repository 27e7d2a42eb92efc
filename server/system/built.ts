import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// What other processes and threads run is built, in development too: the Node of an app need not know TypeScript, and
// what a thread may take of memory is not enough to learn it. build/bundle.ts writes this module anew, as it is in a
// bundle then.
const DIST = new URL('../../dist/', import.meta.url)
const { name } = JSON.parse(readFileSync(new URL('bundle.json', DIST), 'utf8'))

export const WORKER_CODE = fileURLToPath(new URL(`${name}/worker.cjs`, DIST))
export const PAGE_CODE = fileURLToPath(new URL(`${name}/public`, DIST))

/** `file`: that is beside the bundles, at the same place in each version */
export function scriptPath (file: string): string {
  return fileURLToPath(new URL(file, DIST))
}
