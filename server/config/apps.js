import path from 'node:path'
import { DeckError } from '../errors.js'
import { circleOf } from './app-order.js'
import { didYouMean } from './nearest.js'

const DATA_DIR = '.clusterdeck'
/** It names a folder, and is typed. */
export const DECK_NAME = /^[A-Za-z\d][\w.-]{0,59}$/

/** @typedef {{ file: string, values: Record<string, unknown> }} ConfigFile */

/**
 * One of the apps of a config file, `apps: { shop: { … }, mail: { … } }`. What stands beside `apps` holds for all of them.
 * @param {ConfigFile | null} found @param {string | undefined} name @param {string} cwd
 * @returns {{ name: string | null, shared: ConfigFile | null, own: ConfigFile | null, dataDir: { value: string, folder: string } | null }} what `own` says
 *   counts; `dataDir`: of that app, below the data folder of them all; null: as the options say
 * @throws {DeckError} invalid-config
 */
export function pickApp (found, name, cwd) {
  const { apps, ...rest } = found?.values ?? {}
  if (!found || apps === undefined) {
    if (name !== undefined) throw new DeckError('invalid-config', `app: expected a config file with apps, received ${JSON.stringify(name)} and ${found ? `${found.file}, which has none` : 'no config file'}`)
    return { name: null, shared: found, own: null, dataDir: null }
  }
  const { file } = found
  const known = checkedApps(apps, file)
  const wanted = name ?? (known.size === 1 ? [...known.keys()][0] : undefined)
  const own = wanted === undefined ? undefined : known.get(wanted)
  if (wanted === undefined || own === undefined) {
    throw new DeckError('invalid-config', `app: expected one of ${[...known.keys()].join(', ')} (option --app), the apps of ${file}, received ${wanted === undefined ? 'none' : JSON.stringify(wanted)}${wanted === undefined ? '' : didYouMean(wanted, known.keys())}`)
  }
  const { dependsOn, ...values } = own
  return { name: wanted, shared: { file, values: rest }, own: { file, values }, dataDir: Object.hasOwn(own, 'dataDir') ? null : folderOf(wanted, rest.dataDir, { file, cwd }) }
}

/**
 * All apps of a config file.
 * @param {ConfigFile} found @returns {Map<string, { dependsOn: readonly string[] }>} by name, as the file lists them; none: it has no apps
 * @throws {DeckError} invalid-config
 */
export function appsOf ({ file, values: { apps } }) {
  return new Map(apps === undefined ? [] : [...checkedApps(apps, file)].map(([name, { dependsOn = [] }]) => [name, { dependsOn: /** @type {string[]} */ (dependsOn) }]))
}

/** @param {string} name @param {unknown} dataDir of them all @param {{ file: string, cwd: string }} places */
function folderOf (name, dataDir, { file, cwd }) {
  if (dataDir === undefined) return { value: path.join(DATA_DIR, name), folder: cwd }
  return typeof dataDir === 'string' ? { value: path.join(dataDir, name), folder: path.dirname(file) } : null
}

/** @param {unknown} apps @param {string} file @returns {Map<string, Record<string, unknown>>} */
function checkedApps (apps, file) {
  if (!isObject(apps) || Object.keys(apps).length === 0) throw new DeckError('invalid-config', `apps in ${file}: expected an object of apps, { shop: { entry: "shop.js" } }, received ${JSON.stringify(apps)}`)
  for (const [name, options] of Object.entries(apps)) {
    if (!DECK_NAME.test(name)) throw new DeckError('invalid-config', `apps in ${file}: expected a name of letters, digits, ".", "_" and "-", at most 60, received ${JSON.stringify(name.slice(0, 100))}`)
    if (!isObject(options)) throw new DeckError('invalid-config', `apps.${name} in ${file}: expected an object of options, received ${JSON.stringify(options)}`)
  }
  const known = new Map(Object.entries(/** @type {Record<string, any>} */ (apps)))
  for (const [name, { dependsOn }] of known) if (dependsOn !== undefined) checkDependencies(name, dependsOn, { known, file })
  const circle = circleOf(new Map([...known].map(([name, { dependsOn = [] }]) => [name, { dependsOn }])))
  if (circle) throw new DeckError('invalid-config', `apps.${circle[0]}.dependsOn in ${file}: expected no circle, received ${circle.join(' → ')}`)
  return known
}

/** @param {string} name @param {unknown} dependsOn @param {{ known: Map<string, unknown>, file: string }} apps */
function checkDependencies (name, dependsOn, { known, file }) {
  const source = `apps.${name}.dependsOn in ${file}`
  if (!Array.isArray(dependsOn) || dependsOn.some((each) => typeof each !== 'string')) throw new DeckError('invalid-config', `${source}: expected a list of names of apps, received ${JSON.stringify(dependsOn)}`)
  for (const each of dependsOn) {
    if (each === name) throw new DeckError('invalid-config', `${source}: expected other apps, received "${name}" itself`)
    if (!known.has(each)) throw new DeckError('invalid-config', `${source}: expected some of ${[...known.keys()].join(', ')}, received ${JSON.stringify(each)}${didYouMean(each, known.keys())}`)
  }
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
