import { existsSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from '../config/apps.ts'
import { onRefusal } from '../errors.ts'
import { KEPT_VARIABLE } from '../keeper/link.ts'
import { forAll } from './pm2-words.ts'
import { misuse } from './usage.ts'

/** What a command line is about, before any command is loaded. */

/** Commander would take the app's arguments, which follow `--`, for ours. */
export function beforeSeparator (argv: string[]) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end)
}

/** @returns the first argument that is no option */
export function commandOf (argv: string[]): string | undefined {
  return beforeSeparator(argv).find((word) => !word.startsWith('-'))
}

/** The options of a `start` that starts apps of the host again; any other one is about an entry. */
const OF_APPS = /^--(all|json|no-wait|timeout=.*)$/

/**
 * Tells whether `start` is for apps of the host, and not for an entry: all words are names, the first one is no file or
 * program here, and the host has an app of that name, or remembers it.
 */
export async function startsApps (argv: readonly string[],
  { env, cwd }: { env: Record<string, string | undefined>, cwd: string }): Promise<boolean>
{
  // A keeper's master runs the entry that its keeper was given.
  if (env[KEPT_VARIABLE] || argv.includes('--')) return false
  const given = beforeSeparator([...argv]).filter((word, index, all) =>
    word !== '--timeout' && all[index - 1] !== '--timeout'
  )
  const [first, ...others] = given.filter((word) => !word.startsWith('-')).slice(1)
  if (given.some((word) => word.startsWith('-') && !OF_APPS.test(word))) return false
  if (given.includes('--all')) return true
  if (first === undefined || !DECK_NAME.test(first) || isEntry(first, cwd)) return false
  const names = await namesOfHost(env)
  if (first === 'all' && !names.includes(first))
    throw misuse('start', 'an entry or an app', `"all"${forAll('start', first)}`)
  return names.includes(first) || (others.length > 0 && names.length > 0)
}

function isEntry (word: string, cwd: string) {
  return existsSync(path.resolve(cwd, word)) || existsSync(path.resolve(cwd, 'node_modules', '.bin', word))
}

async function namesOfHost (env: Record<string, string | undefined>): Promise<string[]> {
  // A keeper goes through here too, and is to load as little as it can.
  const { appsOfHost } = await import('./known-apps.ts')
  // A start in the foreground needs no host.
  return (await appsOfHost(env).catch(onRefusal(() => []))).map(({ name }) => name)
}
