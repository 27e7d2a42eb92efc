import { existsSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from '../config/apps.js'
import { DeckError } from '../errors.js'
import { KEPT_VARIABLE } from '../keeper/link.js'
import { beforeSeparator } from './arguments.js'

/** The options of a `start` that starts apps of the host again; any other one is about an entry. */
const OF_APPS = /^--(all|json|no-wait|timeout=.*)$/

/**
 * Tells whether `start` is for apps of the host, and not for an entry: all words are names, the first one is no file or
 * program here, and the host has an app of that name, or remembers it.
 * @param {readonly string[]} argv @param {{ env: Record<string, string | undefined>, cwd: string }} place
 * @returns {Promise<boolean>}
 */
export async function startsApps (argv, { env, cwd }) {
  // A keeper's master runs the entry that its keeper was given.
  if (env[KEPT_VARIABLE] || argv.includes('--')) return false
  const given = beforeSeparator([...argv]).filter((word, index, all) => word !== '--timeout' && all[index - 1] !== '--timeout')
  const [first, ...others] = given.filter((word) => !word.startsWith('-')).slice(1)
  if (given.some((word) => word.startsWith('-') && !OF_APPS.test(word))) return false
  if (given.includes('--all')) return true
  if (first === undefined || !DECK_NAME.test(first) || isEntry(first, cwd)) return false
  const names = await namesOfHost(env)
  return names.includes(first) || (others.length > 0 && names.length > 0)
}

/** @param {string} word @param {string} cwd */
function isEntry (word, cwd) {
  return existsSync(path.resolve(cwd, word)) || existsSync(path.resolve(cwd, 'node_modules', '.bin', word))
}

/** @param {Record<string, string | undefined>} env @returns {Promise<string[]>} */
async function namesOfHost (env) {
  // A keeper goes through here too, and is to load as little as it can.
  const [{ appsOfHost }, { rememberedApps }] = await Promise.all([import('./host.js'), import('./remembered.js')])
  try {
    return [...await appsOfHost(env), ...rememberedApps(env)].map(({ name }) => name)
  } catch (error) {
    // A start in the foreground needs no host.
    if (error instanceof DeckError) return []
    throw error
  }
}
