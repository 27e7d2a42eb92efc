import path from 'node:path'
import { didYouMean } from '../config/nearest.js'
import { OPTIONS } from '../config/option-list.js'
import { SCHEMA } from '../config/options.js'
import { expectedInstead } from '../config/runtime-options.js'
import { DeckError } from '../errors.js'
import { isObject } from '../config/is-object.js'
import { environmentOf, environmentsOf } from './environment.js'
import { deployNames, readDeploySection } from './deploy-section.js'
import { jobApp } from './job.js'
import { FILE_KEYS, KEYS } from './keys.js'
import { Expression, SPREAD } from './literal.js'
import { programOf } from './program.js'

/**
 * The outcome of one key. `to`: names of options; `note`: a remark, or why it is left out.
 * @typedef {{ key: string, fate: import('./keys.js').Fate, to: string[], note: string | null }} Item
 *
 * @typedef {object} App
 * @property {string} name  its name below `apps` in a config file
 * @property {Map<string, unknown>} settings  values by the name of the option
 * @property {Item[]} items
 * @property {{ option: string, text: string }[]} notes  remarks that belong to no key
 *
 * @typedef {{ name: string } & import('./program.js').Foreign} ForeignApp  one that cannot be run as PM2 is told
 *
 * @typedef {{ apps: App[], foreign: ForeignApp[], items: Item[] }} Conversion `items`: of what stands beside the apps
 */

const MAX_NAME = 60
const IS_DEFAULT = 'not needed: it is the default'
/** @type {Readonly<Record<string, string>>} */
const LONG_NAMES = Object.fromEntries(Object.entries(KEYS).flatMap(([key, { also = [] }]) => [key, ...also].map((name) => [name, key])))

/**
 * Converts what PM2 is told about its apps to options.
 * @param {unknown} ecosystem  what the file exports: a list of apps, an object with `apps`, or one app
 * @param {object} how
 * @param {string} how.folder  what relative paths start from
 * @param {string} how.target  the folder of the config file
 * @param {import('./program.js').Look} how.look
 * @param {string} [how.envName]  `production` for `env_production`
 * @returns {Conversion}
 * @throws {DeckError} invalid-config, usage
 */
export function convertEcosystem (ecosystem, { folder, target, look, envName }) {
  const given = appsOf(ecosystem)
  if (given.length === 0) throw new DeckError('invalid-config', 'expected at least one app, received none')
  const deploy = isObject(ecosystem) ? ecosystem.deploy : undefined
  checkEnvironment([...given.flatMap(environmentsOf), ...deployNames(deploy)], envName)
  const section = deploy === undefined || isApp(/** @type {Record<string, unknown>} */ (ecosystem)) ? null : checkedSection(readDeploySection(deploy, envName))
  const names = namesOf(given, envName)
  const all = given.map((app, index) => convertApp(app, { name: names[index], folder, target, look, envName, deploy, section }))
  const apps = all.filter((each) => 'settings' in each)
  const isNamed = (/** @type {App} */ app) => byLongName(given[all.indexOf(app)]).values.name !== undefined
  return {
    apps: isAlone({ apps }) && isNamed(apps[0]) ? [{ ...apps[0], settings: new Map([['name', apps[0].name], ...apps[0].settings]) }] : apps,
    foreign: all.filter((each) => 'reason' in each),
    items: isObject(ecosystem) && !isApp(ecosystem) ? fileItems(ecosystem, section) : []
  }
}

/** @param {Pick<Conversion, 'apps'>} conversion @returns {boolean} whether it is the only app, so the config file needs no `apps` */
export function isAlone ({ apps }) {
  return apps.length === 1 && !apps[0].settings.has('autostart')
}

/** @param {unknown} ecosystem @returns {Record<string, unknown>[]} */
function appsOf (ecosystem) {
  const found = isObject(ecosystem) ? ecosystem.apps ?? ecosystem.pm2 ?? (isApp(ecosystem) ? ecosystem : undefined) : ecosystem
  if (found === undefined || found === null) {
    const received = isObject(ecosystem) ? 'an object without these' : 'nothing'
    throw new DeckError('invalid-config', `expected a list of apps, an object with "apps", or an app with "script", received ${received}`)
  }
  return [found].flat().map((app, index) => {
    if (isObject(app)) return app
    const received = Array.isArray(app) ? 'a list' : app === null ? 'null' : `a ${typeof app}`
    throw new DeckError('invalid-config', `apps[${index}]: expected an object, received ${received}`)
  })
}

/** @param {Record<string, unknown>} object */
function isApp (object) {
  return object.apps === undefined && object.pm2 === undefined && Object.keys(object).some((key) => ownValue(LONG_NAMES, key) === 'script')
}

/** @param {string[]} names @param {string | undefined} envName */
function checkEnvironment (names, envName) {
  const known = new Set(names)
  if (envName === undefined || known.has(envName)) return
  const expected = known.size > 0 ? `one of ${[...known].join(', ')}` : 'a name for which an app has env_<name>, and none has any'
  throw new DeckError('usage', `--env: expected ${expected}, received ${JSON.stringify(envName)}${didYouMean(envName, known)}`)
}

/** Makes names that are unique and that a config file can have. @param {Record<string, unknown>[]} apps @param {string | undefined} envName */
export function namesOf (apps, envName) {
  /** @type {string[]} */
  const names = []
  for (const app of apps) {
    const { name, script, append_env_to_name: isAppended } = byLongName(app).values
    const ofScript = typeof script === 'string' ? path.parse(script).name : ''
    const wanted = typeof name === 'number' ? String(name) : typeof name === 'string' && name !== '' ? name : ofScript
    const full = isAppended && envName !== undefined ? `${wanted}-${envName}` : wanted
    const plain = full.replace(/[^\w.-]+/g, '-').replace(/^[^A-Za-z\d]+|-+$/g, '').slice(0, MAX_NAME) || 'app'
    let free = plain
    for (let count = 2; names.includes(free); count++) free = `${plain}-${count}`
    names.push(free)
  }
  return names
}

/**
 * Renames keys to the names that PM2 uses inside. Of two with the same meaning the first one counts.
 * @param {Record<string, unknown>} app
 */
function byLongName (app) {
  /** @type {Record<string, unknown>} */
  const values = {}
  /** @type {Map<string, string>} the name that was given, by the long one */
  const givenAs = new Map()
  for (const [key, value] of Object.entries(app)) {
    const name = ownValue(LONG_NAMES, key)
    if (name === undefined || value === undefined || value === null) continue
    if (name !== key && isObject(app) && Object.hasOwn(app, name)) continue
    if (givenAs.has(name)) continue
    values[name] = value
    givenAs.set(name, key)
  }
  return { values, givenAs }
}

/**
 * @param {Record<string, unknown>} given
 * @param {{ name: string, folder: string, target: string, look: import('./program.js').Look, envName?: string, deploy: unknown, section: Section | null }} how
 * @returns {App | ForeignApp}
 */
function convertApp (given, { name, folder, target, look, envName, deploy, section }) {
  const { values, givenAs } = byLongName(given)
  const app = { ...given, ...values }
  const cwd = path.resolve(folder, typeof app.cwd === 'string' ? app.cwd : '')
  const { variables, unset, dropped } = environmentOf(app, { envName, deploy })
  const program = programOf(app, { cwd, look })
  if ('reason' in program) return { name, ...program }
  const { isOther = false } = program
  const env = { ...(unset && { [SPREAD]: unset }), ...variables, ...program.env }
  const inFile = (/** @type {string} */ file) => relativeTo(target, path.resolve(folder, file))
  /** @type {import('./keys.js').Scene} */
  const scene = { app, program, env, path: inFile, envName }
  /** @type {Map<string, unknown>} */
  const settings = new Map()
  const items = Object.entries(given).map(([key, value]) => itemOf(key, value))
  if (!settings.has('env') && Object.keys(env).length > 0) settings.set('env', env)
  if (!settings.has('cwd') && folder !== target) settings.set('cwd', inFile(cwd))
  const notes = [
    ...program.notes.map((text) => ({ option: 'entry', text })),
    ...dropped.map((each) => ({ option: 'entry', text: `env: ${each} is left out, as no environment can hold it.` })),
    ...(settings.has('workers') ? [] : [{ option: 'workers', text: 'PM2 runs one process by default. With two or more, the app survives the end of one.' }])
  ]
  if (!settings.has('workers')) settings.set('workers', 1)
  if (section && 'set' in section) {
    for (const [option, each] of Object.entries(section.set)) settings.set(option, each)
    notes.push(...section.notes)
  }
  const done = { name, settings, items, notes }
  return settings.has('restart.cron') && settings.has('autostart') ? jobApp(done, { program, cwd }) : done

  /** @param {string} key @param {unknown} value @returns {Item} */
  function itemOf (key, value) {
    const long = ownValue(LONG_NAMES, key)
    if (long === undefined) return environmentItem(key, value) ?? leftOutItem(key, `PM2 does not know it either${didYouMean(key, Object.keys(LONG_NAMES))}`)
    const row = KEYS[long]
    if (value === undefined || value === null) return { key, fate: row.fate, to: [], note: 'not set, so the default counts' }
    if (givenAs.get(long) !== key) return leftOutItem(key, `${givenAs.get(long)} means the same, and counts`)
    if (row.usual?.includes(value)) return { key, fate: row.fate === 'left out' ? 'carried over' : row.fate, to: [], note: IS_DEFAULT }
    const outcome = row.read ? row.read(value, scene) : { left: row.about }
    if (outcome === null) return { key, fate: 'carried over', to: [], note: IS_DEFAULT }
    if ('left' in outcome) return leftOutItem(key, outcome.left)
    const refused = Object.entries(outcome.set).map(([option, each]) => refusalOf(option, each, { isOther })).find((each) => each !== null)
    if (refused) return leftOutItem(key, refused)
    for (const [option, each] of Object.entries(outcome.set)) settings.set(option, each)
    return { key, fate: row.fate, to: Object.keys(outcome.set), note: outcome.note ?? null }
  }

  /** @param {string} key @param {unknown} value @returns {Item | null} */
  function environmentItem (key, value) {
    const [, named] = /^env_(\S+)$/.exec(key) ?? []
    if (named === undefined) return null
    if (!isObject(value)) return leftOutItem(key, 'it is not an object of variables')
    if (named !== envName) return leftOutItem(key, `Nearest: clusterdeck import --env ${named}`)
    settings.set('env', env)
    return { key, fate: 'carried over', to: ['env'], note: `Over env, by --env ${named}.` }
  }
}

/** @param {string} key @param {string} note @returns {Item} */
function leftOutItem (key, note) {
  return { key, fate: 'left out', to: [], note }
}

/** @typedef {ReturnType<typeof readDeploySection>} Section */

/** @param {Section} section @returns {Section} */
function checkedSection (section) {
  if ('left' in section) return section
  const refused = Object.entries(section.set).map(([option, value]) => refusalOf(option, value)).find((each) => each !== null)
  return refused ? { left: refused } : section
}

/** @param {Record<string, unknown>} ecosystem @param {Section | null} section @returns {Item[]} */
function fileItems (ecosystem, section) {
  const ofApps = ecosystem.apps === undefined || ecosystem.apps === null ? 'pm2' : 'apps'
  const known = ['apps', ...Object.keys(FILE_KEYS)]
  return Object.keys(ecosystem).filter((key) => key !== ofApps).map((key) => {
    if (key === 'deploy' && section && 'set' in section) return { key, fate: 'replaced', to: Object.keys(section.set), note: `of ${section.name}, for clusterdeck deploy --git` }
    if (key === 'deploy' && section && 'left' in section) return leftOutItem(key, section.left)
    return leftOutItem(key, ownValue(FILE_KEYS, key)?.about ?? `PM2 does not know it either${didYouMean(key, known)}`)
  })
}

/**
 * The config file must load, whatever the file of PM2 says.
 * @param {string} name of an option @param {unknown} value @param {{ isOther?: boolean }} [program]  `isOther`: Node does not run it
 * @returns {string | null} why it cannot be the value
 */
function refusalOf (name, value, { isOther = false } = {}) {
  // It stands beside the options of an app.
  if (value instanceof Expression || name === 'autostart') return null
  const option = OPTIONS.find((each) => each.name === name)
  if (!option) return `there is no option ${name}`
  const bare = name === 'env' && isObject(value) ? Object.fromEntries(Object.entries(value).filter(([, each]) => !(each instanceof Expression))) : value
  const nested = option.path.reduceRight((/** @type {unknown} */ inner, key) => ({ [key]: inner }), bare)
  if (!SCHEMA.safeParse(nested).success) return `expected ${option.expected}`
  const instead = isOther ? expectedInstead('other', option, value) : null
  return instead === null ? null : `expected ${instead}`
}

/** Makes a path relative if the file is near the config file. @param {string} folder @param {string} file absolute @returns {string} */
function relativeTo (folder, file) {
  const relative = path.relative(folder, file)
  if (relative === '') return '.'
  const isNear = !relative.startsWith('../../../') && !path.isAbsolute(relative)
  return isNear ? relative : file
}

/** @template T @param {Readonly<Record<string, T>>} table @param {string} key @returns {T | undefined} */
function ownValue (table, key) {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
