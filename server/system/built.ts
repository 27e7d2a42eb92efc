import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// What other processes and threads run is built, in development too: the Node of an app need not know TypeScript, and
// what a thread may take of memory is not enough to learn it. In a bundle, built-in-bundle.ts takes the place of this.
const ROOT = new URL('../../', import.meta.url)
const DIST = new URL('dist/', ROOT)
const { name } = JSON.parse(readFileSync(new URL('bundle.json', DIST), 'utf8'))

export const WORKER_CODE = fileURLToPath(new URL(`${name}/worker.cjs`, DIST))

/** `file`: that is beside the bundles, at the same place in each version */
export function scriptPath (file: string): string {
  return fileURLToPath(new URL(file, DIST))
}

/** From then on it does not matter what becomes of the files of this installation. */
export function holdFiles () {}

/**
 * Reads a file that belongs to this version: a template, a style sheet, a page of the manual.
 * @param file its path in a clone, or `pages/<name>` for what a page loads
 * @throws {Error} there is none
 */
export function heldText (file: string): string {
  return readFileSync(new URL(file.startsWith('pages/') ? `dist/${name}/${file}` : file, ROOT), 'utf8')
}
