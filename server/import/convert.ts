import path from 'node:path'
import { didYouMean } from '../config/nearest.ts'
import { OPTIONS } from '../config/option-list.ts'
import { SCHEMA } from '../config/options.ts'
import { expectedInstead } from '../config/runtime-options.ts'
import { DeckError } from '../errors.ts'
import { isObject } from '../config/is-object.ts'
import { environmentOf, environmentsOf } from './environment.ts'
import { deployNames, readDeploySection } from './deploy-section.ts'
import { jobApp } from './job.ts'
import { FILE_KEYS, KEYS, namesOfKey, type Fate, type Scene } from './keys.ts'
import { Expression, SPREAD } from './literal.ts'
import { programOf, type Foreign, type Look } from './program.ts'

/** The outcome of one key. `to`: names of options; `note`: a remark, or why it is left out. */
export type Item = { key: string, fate: Fate, to: string[], note: string | null }
export type App = {
  /** its name below `apps` in a config file */
  name: string,
  /** values by the name of the option */
  settings: Map<string, unknown>,
  items: Item[],
  /** remarks that belong to no key */
  notes: { option: string, text: string }[]
}
/** one that cannot be run as PM2 is told */
export type ForeignApp =
  & { name: string }
  & Foreign
/** `items`: of what stands beside the apps */
export type Conversion = { apps: App[], foreign: ForeignApp[], items: Item[] }

const MAX_NAME = 60
const IS_DEFAULT = 'not needed: it is the default'
const LONG_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(KEYS).flatMap((key) => namesOfKey(key).map((name) => [name, key]))
)

/**
 * Converts what PM2 is told about its apps to options.
 * @param ecosystem what the file exports: a list of apps, an object with `apps`, or one app
 * @throws {DeckError} invalid-config, usage
 */
export function convertEcosystem (ecosystem: unknown, { folder, target, look, envName }: {
  /** what relative paths start from */
  folder: string,
  /** the folder of the config file */
  target: string,
  look: Look,
  /** `production` for `env_production` */
  envName?: string
}): Conversion {
  const given = appsOf(ecosystem)
  if (given.length === 0) throw new DeckError('invalid-config', 'expected at least one app, received none')
  const deploy = isObject(ecosystem) ? ecosystem.deploy : undefined
  checkEnvironment([...given.flatMap(environmentsOf), ...deployNames(deploy)], envName)
  const section = deploy === undefined || isApp(ecosystem as Record<string, unknown>)
    ? null
    : checkedSection(readDeploySection(deploy, envName))
  const names = namesOf(given, envName)
  const all = given.map((app, index) =>
    convertApp(app, { name: names[index], folder, target, look, envName, deploy, section })
  )
  const apps = all.filter((each) => 'settings' in each)
  const isNamed = (app: App) => byLongName(given[all.indexOf(app)]).values.name !== undefined
  return {
    apps: isAlone({ apps }) && isNamed(apps[0])
      ? [{ ...apps[0], settings: new Map([['name', apps[0].name], ...apps[0].settings]) }]
      : apps,
    foreign: all.filter((each) => 'reason' in each),
    items: isObject(ecosystem) && !isApp(ecosystem) ? fileItems(ecosystem, section) : []
  }
}

/** Tells whether it is the only app, so the config file needs no `apps` */
export function isAlone ({ apps }: Pick<Conversion, 'apps'>): boolean {
  return apps.length === 1 && !apps[0].settings.has('autostart')
}

function appsOf (ecosystem: unknown): Record<string, unknown>[] {
  const found = isObject(ecosystem)
    ? ecosystem.apps ?? ecosystem.pm2 ?? (isApp(ecosystem) ? ecosystem : undefined)
    : ecosystem
  if (found === undefined || found === null) {
    const received = isObject(ecosystem) ? 'an object without these' : 'nothing'
    throw new DeckError('invalid-config',
      `expected a list of apps, an object with "apps", or an app with "script", received ${received}`)
  }
  return [found].flat().map((app, index) => {
    if (isObject(app)) return app
    const received = Array.isArray(app) ? 'a list' : app === null ? 'null' : `a ${typeof app}`
    throw new DeckError('invalid-config', `apps[${index}]: expected an object, received ${received}`)
  })
}

function isApp (object: Record<string, unknown>) {
  return object.apps === undefined && object.pm2 === undefined &&
    Object.keys(object).some((key) => ownValue(LONG_NAMES, key) === 'script')
}

function checkEnvironment (names: string[], envName: string | undefined) {
  const known = new Set(names)
  if (envName === undefined || known.has(envName)) return
  const expected = known.size > 0
    ? `one of ${[...known].join(', ')}`
    : 'a name for which an app has env_<name>, and none has any'
  throw new DeckError('usage',
    `--env: expected ${expected}, received ${JSON.stringify(envName)}${didYouMean(envName, known)}`)
}

/** Makes names that are unique and that a config file can have. */
export function namesOf (apps: Record<string, unknown>[], envName: string | undefined) {
  const names: string[] = []
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

/** Renames keys to the names that PM2 uses inside. Of two with the same meaning the first one counts. */
function byLongName (app: Record<string, unknown>) {
  const values: Record<string, unknown> = {}
  /** the name that was given, by the long one */
  const givenAs: Map<string, string> = new Map()
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

function convertApp (given: Record<string, unknown>,
  { name, folder, target, look, envName, deploy, section }: { name: string, folder: string, target: string, look: Look,
    envName?: string, deploy: unknown, section: Section | null }): App | ForeignApp
{
  const { values, givenAs } = byLongName(given)
  const app = { ...given, ...values }
  const cwd = path.resolve(folder, typeof app.cwd === 'string' ? app.cwd : '')
  const { variables, unset, dropped } = environmentOf(app, { envName, deploy })
  const program = programOf(app, { cwd, look })
  if ('reason' in program) return { name, ...program }
  const { isOther = false } = program
  const env = { ...(unset && { [SPREAD]: unset }), ...variables, ...program.env }
  const inFile = (file: string) => relativeTo(target, path.resolve(folder, file))
  const scene: Scene = { app, program, env, path: inFile, envName }
  const settings: Map<string, unknown> = new Map()
  const items = Object.entries(given).map(([key, value]) => itemOf(key, value))
  if (!settings.has('env') && Object.keys(env).length > 0) settings.set('env', env)
  if (!settings.has('cwd') && folder !== target) settings.set('cwd', inFile(cwd))
  const notes = [...program.notes.map((text) => ({ option: 'entry', text })),
    ...dropped.map((each) => ({ option: 'entry', text: `env: ${each} is left out, as no environment can hold it.` })),
    ...(settings.has('workers')
      ? []
      : [{ option: 'workers',
        text: 'PM2 runs one process by default. With two or more, the app survives the end of one.' }])]
  if (!settings.has('workers')) settings.set('workers', 1)
  if (section && 'set' in section) {
    for (const [option, each] of Object.entries(section.set)) settings.set(option, each)
    notes.push(...section.notes)
  }
  const done = { name, settings, items, notes }
  return settings.has('restart.cron') && settings.has('autostart') ? jobApp(done, { program, cwd }) : done

  function itemOf (key: string, value: unknown): Item {
    const long = ownValue(LONG_NAMES, key)
    if (long === undefined)
      return environmentItem(key, value) ??
        leftOutItem(key, `PM2 does not know it either${didYouMean(key, Object.keys(LONG_NAMES))}`)
    const row = KEYS[long]
    if (value === undefined || value === null)
      return { key, fate: row.fate, to: [], note: 'not set, so the default counts' }
    if (givenAs.get(long) !== key) return leftOutItem(key, `${givenAs.get(long)} means the same, and counts`)
    if (row.usual?.includes(value))
      return { key, fate: row.fate === 'left out' ? 'carried over' : row.fate, to: [], note: IS_DEFAULT }
    const outcome = row.read ? row.read(value, scene) : { left: row.about }
    if (outcome === null) return { key, fate: 'carried over', to: [], note: IS_DEFAULT }
    if ('left' in outcome) return leftOutItem(key, outcome.left)
    const refused = Object.entries(outcome.set).map(([option, each]) => refusalOf(option, each, { isOther })).find((
      each
    ) => each !== null)
    if (refused) return leftOutItem(key, refused)
    for (const [option, each] of Object.entries(outcome.set)) settings.set(option, each)
    return { key, fate: row.fate, to: Object.keys(outcome.set), note: outcome.note ?? null }
  }

  function environmentItem (key: string, value: unknown): Item | null {
    const [, named] = /^env_(\S+)$/.exec(key) ?? []
    if (named === undefined) return null
    if (!isObject(value)) return leftOutItem(key, 'it is not an object of variables')
    if (named !== envName) return leftOutItem(key, `Nearest: clusterdeck import --env ${named}`)
    settings.set('env', env)
    return { key, fate: 'carried over', to: ['env'], note: `Over env, by --env ${named}.` }
  }
}

function leftOutItem (key: string, note: string): Item {
  return { key, fate: 'left out', to: [], note }
}

type Section = ReturnType<typeof readDeploySection>

function checkedSection (section: Section): Section {
  if ('left' in section) return section
  const refused = Object.entries(section.set).map(([option, value]) => refusalOf(option, value)).find((each) =>
    each !== null
  )
  return refused ? { left: refused } : section
}

function fileItems (ecosystem: Record<string, unknown>, section: Section | null): Item[] {
  const ofApps = ecosystem.apps === undefined || ecosystem.apps === null ? 'pm2' : 'apps'
  const known = ['apps', ...Object.keys(FILE_KEYS)]
  return Object.keys(ecosystem).filter((key) => key !== ofApps).map((key) => {
    if (key === 'deploy' && section && 'set' in section)
      return { key, fate: 'replaced', to: Object.keys(section.set),
        note: `of ${section.name}, for clusterdeck deploy --git` }
    if (key === 'deploy' && section && 'left' in section) return leftOutItem(key, section.left)
    return leftOutItem(key, ownValue(FILE_KEYS, key)?.about ?? `PM2 does not know it either${didYouMean(key, known)}`)
  })
}

/**
 * The config file must load, whatever the file of PM2 says. `name`: of an option; `isOther`: Node does not
 * run it. Returns why it cannot be the value.
 */
function refusalOf (name: string, value: unknown, { isOther = false }: { isOther?: boolean } = {}): string | null {
  // It stands beside the options of an app.
  if (value instanceof Expression || name === 'autostart') return null
  const option = OPTIONS.find((each) => each.name === name)
  if (!option) return `there is no option ${name}`
  const bare = name === 'env' && isObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([, each]) => !(each instanceof Expression)))
    : value
  const nested = option.path.reduceRight((inner: unknown, key) => ({ [key]: inner }), bare)
  if (!SCHEMA.safeParse(nested).success) return `expected ${option.expected}`
  const instead = isOther ? expectedInstead('other', option, value) : null
  return instead === null ? null : `expected ${instead}`
}

/** Makes a path relative if the file is near the config file. `file`: absolute. */
function relativeTo (folder: string, file: string): string {
  const relative = path.relative(folder, file)
  if (relative === '') return '.'
  const isNear = !relative.startsWith('../../../') && !path.isAbsolute(relative)
  return isNear ? relative : file
}

function ownValue<T> (table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
