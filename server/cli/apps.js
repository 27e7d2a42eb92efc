import { appsOf } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { dataDirOfApp } from './find-master.js'

/**
 * @typedef {{ name: string, dependsOn: readonly string[], autostart: boolean, dataDir: string }} App `autostart`: it is meant where no app is named; `dataDir`: absolute
 * @typedef {import('../config/apps.js').ConfigFile & { apps: ReadonlyMap<string, App> }} Apps `apps`: by name, as the file lists them
 */

/** These variables name one deck, which cannot be that of each app. */
const OF_ONE_DECK = Object.freeze(['CLUSTERDECK_DATA_DIR', 'CLUSTERDECK_URL'])

/**
 * Finds the apps of a config file, and the data folders of their decks.
 * @param {string} command for messages
 * @param {{ config?: string }} options @param {{ env: Record<string, string | undefined>, cwd: string }} place
 * @returns {Promise<Apps>}
 * @throws {DeckError} invalid-config: there are none, or what they depend on is wrong; usage
 */
export async function findApps (command, { config }, { env, cwd }) {
  const variable = OF_ONE_DECK.find((name) => env[name])
  if (variable) {
    throw new DeckError('usage', `${variable}: expected nothing with ${command}, where each app has its own, received ${JSON.stringify(env[variable])}`)
  }
  const found = await readConfigFile(config ?? (env.CLUSTERDECK_CONFIG || undefined), cwd)
  /** @type {ReturnType<typeof appsOf>} */
  const apps = found ? appsOf(found) : new Map()
  if (!found || apps.size === 0) {
    const received = found ? `${found.file}, which has none` : 'no config file'
    throw new DeckError('invalid-config', `${command}: expected a config file with apps, received ${received}`)
  }
  return { ...found, apps: new Map([...apps].map(([name, app]) => [name, { name, ...app, dataDir: dataDirOfApp(found, name, cwd) }])) }
}

/**
 * @param {string} command for messages @param {readonly string[]} names @param {Apps} apps
 * @returns {readonly string[]} the same, or all apps where no names are given
 * @throws {DeckError} usage
 */
export function checkedApps (command, names, { file, apps }) {
  const unknown = names.find((name) => !apps.has(name))
  if (unknown !== undefined) {
    const known = [...apps.keys()].join(', ')
    const received = JSON.stringify(unknown) + didYouMean(unknown, apps.keys())
    throw new DeckError('usage', `${command}: expected some of ${known}, the apps of ${file}, received ${received}`)
  }
  return names.length > 0 ? names : [...apps.keys()]
}
