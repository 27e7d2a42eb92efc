import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { DeckError } from './errors.js'

const DEFAULT_NAMES = ['clusterdeck.config.js', 'clusterdeck.config.mjs', 'clusterdeck.config.json']

/**
 * Reads the config file that was named, or the one that lies in the working folder.
 * @param {string | undefined} named
 * @param {string} cwd
 * @returns {Promise<{ file: string, values: Record<string, unknown> } | null>} null if there is none
 * @throws {DeckError} invalid-config
 */
export async function readConfigFile (named, cwd) {
  const file = named === undefined
    ? DEFAULT_NAMES.map((name) => path.resolve(cwd, name)).find(isFile)
    : path.resolve(cwd, named)
  if (file === undefined) return null
  if (!isFile(file)) throw new DeckError('invalid-config', `config: expected a file, received ${file}, which does not exist`)
  const values = await load(file)
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new DeckError('invalid-config', `${file}: expected an object of options, received ${describeType(values)}`)
  }
  return { file, values }
}

/** @param {string} file */
async function load (file) {
  try {
    if (file.endsWith('.json')) return JSON.parse(readFileSync(file, 'utf8'))
    return (await import(pathToFileURL(file).href)).default
  } catch (/** @type {any} */ error) {
    // The app's own code runs here: its message is what helps, its stack is not ours to show.
    const [reason] = String(error?.message ?? error).split('\n')
    throw new DeckError('invalid-config', `${file}: expected a config file that loads, received: ${reason}`, { cause: error })
  }
}

/** @param {unknown} value */
function describeType (value) {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : value === undefined ? 'no default export' : `a ${typeof value}`
}

/** @param {string} file */
function isFile (file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}
