import { appsOf } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { dataDirOfApp } from './find-master.js'

/**
 * @typedef {{ name: string, dependsOn: readonly string[], dataDir: string }} App `dataDir`: absolute
 * @typedef {{ file: string, values: Record<string, any>, apps: ReadonlyMap<string, App> }} Apps `apps`: by name, as the file lists them
 */

/** What would make one deck of all of them. */
const OF_ONE = Object.freeze(['CLUSTERDECK_DATA_DIR', 'CLUSTERDECK_URL'])

/**
 * The apps of a config file, with the folders where their decks live.
 * @param {string} command for messages
 * @param {{ config?: string }} options @param {{ env: Record<string, string | undefined>, cwd: string }} place
 * @returns {Promise<Apps>}
 * @throws {DeckError} invalid-config: there are none, or what they depend on is wrong; usage
 */
export async function findApps (command, { config }, { env, cwd }) {
  const of = OF_ONE.find((name) => env[name])
  if (of) throw new DeckError('usage', `${of}: expected nothing with ${command}, where each app has its own, received ${JSON.stringify(env[of])}`)
  const found = await readConfigFile(config ?? (env.CLUSTERDECK_CONFIG || undefined), cwd)
  const apps = found ? appsOf(found) : new Map()
  if (!found || apps.size === 0) throw new DeckError('invalid-config', `${command}: expected a config file with apps, received ${found ? `${found.file}, which has none` : 'no config file'}`)
  return { file: found.file, values: found.values, apps: new Map([...apps].map(([name, app]) => [name, { name, ...app, dataDir: dataDirOfApp(found, name, cwd) }])) }
}

/**
 * @param {string} command for messages @param {readonly string[]} names @param {Apps} apps
 * @returns {readonly string[]} the same, or all where there are none
 * @throws {DeckError} usage
 */
export function checkedApps (command, names, { file, apps }) {
  for (const name of names) {
    if (!apps.has(name)) throw new DeckError('usage', `${command}: expected some of ${[...apps.keys()].join(', ')}, the apps of ${file}, received ${JSON.stringify(name)}${didYouMean(name, apps.keys())}`)
  }
  return names.length > 0 ? names : [...apps.keys()]
}
