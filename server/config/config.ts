import path from 'node:path'
import { pickApp, type ConfigFile } from './apps.ts'
import { readConfigFile } from './file.ts'
import { cpuCount } from './cpu-count.ts'
import { checkExposure } from './exposure.ts'
import { deepFreeze } from './deep-freeze.ts'
import { attempt, DeckError } from '../errors.ts'
import { folderOfWish, movedTo, resolveLaunch, type AppNode, type Runtime, type Wish } from '../launch/launch.ts'
import { invalid } from './invalid.ts'
import { checkProxyAuth } from './proxy-auth.ts'
import { checkRuntime } from './runtime-options.ts'
import { isObject } from './is-object.ts'
import { didYouMean, nearestName } from './nearest.ts'
import { isAddress } from './is-address.ts'
import { MAX_WORKERS } from './max-workers.ts'
import { DEFAULTS, OPTIONS, type Option } from './option-list.ts'
import { LOADED } from './loaded-schema.ts'
import { isPlain } from './plain-values.ts'
import { chooseNode, isOldNode, stripsTypes } from '../system/app-node.ts'
import { asNamed, pinPath } from '../system/working-folder.ts'
import { numberWithUnit } from '../../public/setting-value.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import { valueIn } from './value-in.ts'
import type { core, z } from 'zod'
import type { SCHEMA } from './options.ts'

type Environment = Record<string, string | undefined>
/** Where a value comes from; `from`: the file, the variable or the flag. */
export type Origin = { source: 'file' | 'environment' | 'flag' | 'program', from: string | null }
/** A value, the name under which it was given, and the folder of its relative path. */
type Given = { value: unknown, source: string, folder: string, origin?: Origin }
/** by the name of the option; what comes later counts */
type Sources = [string, Given][]
export type Values = z.infer<typeof SCHEMA>
/**
 * `entry`, `args`, `execArgv`, `env`, `cwd`: what is to be run, by Node unless `runtime` is `other`, whatever was asked
 * for; `launch`: what was made of that; `appNode`: what its `node` has come to.
 */
export type Config = Readonly<Omit<Values, 'entry' | 'cwd' | 'workers'> & Resolved>
type Resolved = { entry: string, cwd: string, workers: number, runtime?: Runtime, appNode?: AppNode,
  launch?: { said: string | null, notes: string[] } }
export type HostConfig = Readonly<Pick<Values, 'admin' | 'fleet' | 'keeper' | 'watchdog' | 'history' | 'dataDir'>>

const ENV_PREFIX = 'CLUSTERDECK_'
/** A member repeats its labels in each message to the fleet. */
const MAX_LABELS_BYTES = 8192
/** Groups of options that a host has once for all of its apps. */
const OF_HOST = ['admin', 'fleet', 'keeper']
/** By configuration and name of the option. */
const ORIGINS: WeakMap<object, Map<string, Origin | undefined>> = new WeakMap()
/** Variables that are no options: workers and hooks get them, or commands that talk to a running master read them. */
const OTHER_ENV = ['SLOT', 'RELEASE', 'BOOT', 'URL', 'TOKEN', 'TOKEN_FILE', 'TIMEOUT', 'CONFIG', 'APP', 'KEEPER',
  'KEPT', 'KEPT_FOLDER', 'HOOK', 'FROM_RELEASE', 'ROLLOUT', 'CRASH', 'CRASH_GROUP', 'CRASH_FINGERPRINT', 'CRASH_SLOT',
  'CRASH_CAUSE', 'CRASH_MISSED', 'JOB', 'RUN', 'RUNTIME_DIR', 'HOST_DIR', 'TRACE_START', 'NODE', 'TYPED_NODE'].map((
    name
  ) => ENV_PREFIX + name)

/**
 * By option key (`adminPort`), with values that may be strings; `config`: the file to read, and `app`: which of its apps.
 */
type Flags = Record<string, unknown> & { config?: string, app?: string }

/**
 * Reads what a master runs with: flags over environment over config file over defaults.
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function loadConfig (
  { flags = {}, env = process.env, cwd = process.cwd(), home, countCpus = cpuCount, isAgain = false, isApart = false,
    launchIn, found: known }: {
      flags?: Flags,
      env?: Environment,
      cwd?: string,
      /** the real path of `cwd` at the start: the data folder stays there, wherever a link on the way leads later */
      home?: string,
      /** what `max` means */
      countCpus?: () => number,
      /** this process has read the file before, and it may have changed since */
      isAgain?: boolean,
      /** `env` and `cwd` are those of another shell than this process has, so the file runs in a process of its own */
      isApart?: boolean,
      /** the folder in which a name or a script is looked up, instead of the working folder */
      launchIn?: string,
      /** the config file, where findConfigFile() has just read it */
      found?: ConfigFile | null
    } = {}
): Promise<Config> {
  const { config, app = env.CLUSTERDECK_APP || undefined, ...others } = flags
  const found = known === undefined ? await findConfigFile({ config, env, cwd, isAgain, isApart }) : known
  return await toConfig([...fromApp(found, app, cwd), ...fromEnvironment(env, cwd), ...fromFlags(others, cwd)], { env,
    cwd, home, countCpus, launchIn })
}

/**
 * Reads the config file that is meant. `sources`: as of loadConfig. Returns null: there is none.
 * @throws {DeckError} invalid-config
 */
export async function findConfigFile (
  { config, env, cwd, isAgain = false, isApart = false }: { config?: string, env: Environment, cwd: string,
    isAgain?: boolean, isApart?: boolean }
): Promise<ConfigFile | null> {
  return await readConfigFile(config ?? (env.CLUSTERDECK_CONFIG || undefined), cwd, { isAgain,
    apartWith: isApart ? env : null })
}

/**
 * Reads what a master runs with that a program has started: the program's options, as a config file has them, over
 * those of the file that it names. Nothing else is read. `sources`: as of loadConfig.
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function configFromOptions (options: Record<string, unknown>,
  { configFile, cwd = process.cwd(), countCpus = cpuCount, isAgain = false, launchIn }: { configFile?: string,
    cwd?: string, countCpus?: () => number, isAgain?: boolean, launchIn?: string } = {}): Promise<Config>
{
  const file = configFile === undefined ? null : await readConfigFile(configFile, cwd, { isAgain, isGuest: true })
  const own = fromValues(options, { where: '', folder: cwd, origin: { source: 'program', from: null } })
  return await toConfig([...fromApp(file, undefined, cwd), ...own], { env: process.env, cwd, countCpus, launchIn })
}

/**
 * Reads what a host runs with: flags over environment over defaults, of the options that are not an app's own.
 * `folder`: the host's.
 * @throws {DeckError} invalid-config, unknown-option
 */
export async function readHostConfig (
  { flags = {}, env = process.env, folder }: { flags?: Record<string, unknown>,
    env?: Record<string, string | undefined>, folder: string }
): Promise<HostConfig> {
  const given = new Map(
    [...fromEnvironment(env, folder), ...fromFlags(flags, folder)].filter(([name]) => isOfHost(name))
  )
  const { admin, fleet, keeper, watchdog, history } = await checkOptions(given)
  checkExposure(admin)
  checkFleet(fleet)
  const config = deepFreeze({ admin: checkedAdmin(admin), fleet, keeper, watchdog, history, dataDir: folder })
  ORIGINS.set(config, originsOf(given))
  return config
}

/** `name`: of an option. Returns whether a host has it once for all of its apps. */
export function isOfHost (name: string): boolean {
  return OF_HOST.includes(name.split('.')[0])
}

function originsOf (given: Map<string, Given>) {
  return new Map([...given].map(([name, { origin }]) => [name, origin]))
}

async function toConfig (sources: Sources,
  { env: inherited, cwd, home, countCpus, launchIn }: { env: Environment, cwd: string, home?: string,
    countCpus: () => number, launchIn?: string }): Promise<Config>
{
  const given = oneOf('entry', 'script', sources)
  const values = await checkOptions(given)
  checkTogether(values, (name) => given.get(name)?.source ?? name)
  checkExposure(values.admin)
  checkFleet(values.fleet)
  const wish = wishOf(values, given, cwd)
  const appNode = await chooseNode({ wanted: values.node, source: given.get('node')?.source,
    folder: launchIn ?? folderOfWish(wish), env: inherited })
  const { said, notes, env, ...launch } = launchOf(wish, { env: inherited, launchIn, appNode })
  // Those of an old Node are among its arguments.
  const execArgv = launch.entry === appNode.file ? launch.execArgv : values.execArgv
  checkRuntime({ ...values, execArgv, entry: launch.entry, runtime: launch.runtime, appNode },
    (name) => given.get(name)?.source ?? name)
  const config = deepFreeze({ ...values, ...launch, appNode,
    ...((said !== null || notes.length > 0) && { launch: { said, notes } }), env: { ...env, ...values.env },
    admin: checkedAdmin(values.admin),
    dataDir: pinPath(path.resolve(cwd, values.dataDir), home === undefined ? asNamed(cwd) : { named: cwd, real: home }),
    workers: values.workers === 'max' ? Math.min(countCpus(), MAX_WORKERS) : values.workers })
  ORIGINS.set(config, originsOf(given))
  return config
}

/**
 * Two options say the same: the one from the stronger source counts.
 * @throws {DeckError} invalid-config
 */
function oneOf (one: string, other: string, sources: Sources): Map<string, Given> {
  const given = new Map(sources)
  const [first, second] = [given.get(one), given.get(other)]
  if (!first || !second) return given
  if (first.origin?.source === second.origin?.source) throw invalid(second.source, `either ${one} or ${other}`, 'both')
  const strongest = sources.findLast(([name]) => name === one || name === other)?.[0]
  given.delete(strongest === one ? other : one)
  return given
}

function launchOf (wish: Wish,
  { env, launchIn, appNode: { file: node, version } }: { env: Environment, launchIn?: string,
    appNode: AppNode }): ReturnType<typeof resolveLaunch>
{
  const surroundings = { env, node, isOldNode: isOldNode(version), stripsTypes: stripsTypes(version) }
  const launch = resolveLaunch(wish, surroundings)
  return launchIn === undefined || launch.said === null ? launch : resolveLaunch(movedTo(launchIn, wish), surroundings)
}

function wishOf ({ script, args, execArgv, cwd: own }: Values, given: Map<string, Given>, cwd: string): Wish {
  const entry = given.get('entry')
  return { entry: typeof entry?.value === 'string' ? entry.value : undefined, script, args, execArgv, cwd: own ?? cwd,
    folder: entry?.folder ?? cwd, source: (given.get('script') ?? entry)?.source }
}

type Together = 'standby' | 'dispatch' | 'sticky' | 'ready' | 'rollout' | 'restart' | 'watch' | 'releases'

/** Refuses options that contradict each other. */
function checkTogether ({ standby, dispatch, sticky, ready, rollout, restart, watch, releases }: Pick<Config, Together>,
  sourceOf: (name: string) => string = (name) => name)
{
  const isStopFirst = rollout.order === 'stop-first'
  const { canary } = rollout
  if (watch && releases.mode === 'folder') {
    throw invalid(sourceOf('watch'), 'releases.mode "live" (--releases-mode live), as files of a copy never change',
      'releases.mode "folder"')
  }
  if (ready.log !== undefined && ready.signal !== 'auto') {
    throw invalid(sourceOf('ready.log'),
      `nothing with ready.signal "${ready.signal}", as only one of them can say when a worker is ready`,
      JSON.stringify(ready.log))
  }
  const [by] = Object.entries(sticky.by).find(([, name]) => name !== undefined) ?? []
  if (by !== undefined && dispatch !== 'sticky')
    throw invalid(sourceOf(`sticky.by.${by}`), 'dispatch "sticky" with it', `dispatch "${dispatch}"`)
  const noStandby = [
    isStopFirst && '0 with rollout.order "stop-first", as a standby worker runs beside those of the slots',
    restart.policy !== 'always' &&
    `0 with restart.policy "${restart.policy}", as a standby worker would do the work of a job early`
  ].find((expected) => expected !== false)
  if (standby > 0 && noStandby !== undefined) throw invalid(sourceOf('standby'), noStandby, standby)
  if (isStopFirst && canary.workers > 0) {
    throw invalid(sourceOf('rollout.canary.workers'),
      '0 with rollout.order "stop-first", as a canary serves beside all old workers', canary.workers)
  }
}

/** @throws {DeckError} invalid-config */
function checkedAdmin (admin: Config['admin']): Config['admin'] {
  const { basePath, publicUrl, tls, proxyAuth } = admin
  checkPair('admin', tls)
  checkProxyAuth(proxyAuth)
  const shownBelow = publicUrl === undefined ? undefined : new URL(publicUrl).pathname.replace(/\/+$/, '')
  if (shownBelow !== undefined && basePath !== undefined && basePath !== shownBelow) {
    throw invalid('admin.basePath', `${JSON.stringify(shownBelow)}, the path of admin.publicUrl`,
      JSON.stringify(basePath))
  }
  return basePath === undefined && shownBelow ? { ...admin, basePath: shownBelow } : admin
}

/** @throws {DeckError} invalid-config */
function checkFleet ({ token, credentials, labels, tls }: Config['fleet']) {
  const bytes = Buffer.byteLength(JSON.stringify(labels))
  if (bytes > MAX_LABELS_BYTES) throw invalid('fleet.labels', `at most ${MAX_LABELS_BYTES} bytes in all`, bytes)
  checkPair('fleet', tls)
  if (token !== undefined && credentials !== undefined)
    throw invalid('fleet.token', 'either fleet.token or fleet.credentials', 'both')
}

/** @throws {DeckError} invalid-config */
function checkPair (group: 'admin' | 'fleet', { cert, key }: { cert?: string, key?: string }) {
  if ((cert === undefined) === (key === undefined)) return
  const [present, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key']
  throw invalid(`${group}.tls.${missing}`, `a file, as ${group}.tls.${present} is set`, 'nothing')
}

/** `name`: of an option. Returns null: it has its default. */
export function originOf (config: Config | HostConfig, name: string): Origin | null {
  return ORIGINS.get(config)?.get(name) ?? null
}

/** @returns the config file, if it sets any option */
export function configFileOf (config: Config): string | null {
  return [...ORIGINS.get(config)?.values() ?? []].find((origin) => origin?.source === 'file')?.from ?? null
}

export function valueOf (config: Partial<Config>, { path }: Pick<Option, 'path'>): unknown {
  return valueIn(config, path)
}

/**
 * The same configuration with other values, which are held against the same schema as at a start.
 * @param wanted by the name of the option, `drain.deadlineMs`
 * @throws {DeckError} invalid-config, unknown-option
 */
export function withValues (config: Config, wanted: Record<string, unknown>): Config {
  for (const name of Object.keys(wanted)) if (!OPTIONS.some((option) => option.name === name)) throw notAnOption(name)
  const given = givenWith(config, wanted)
  const { entry, cwd, workers, runtime, appNode, launch } = config
  const next = deepFreeze({ ...plainValues(given) ?? valuesBySchema(given), entry, cwd, workers,
    ...(runtime && { runtime }), ...(appNode && { appNode }), ...(launch && { launch }) })
  checkTogether(next)
  checkRuntime(next)
  return next
}

function givenWith (config: Config, wanted: Record<string, unknown>): Map<string, Given> {
  return new Map(OPTIONS.flatMap((option) => {
    const { name } = option
    const value = Object.hasOwn(wanted, name) ? wanted[name] : valueOf(config, option)
    return value === undefined ? [] : [[name, { value, source: name, folder: config.cwd }]]
  }))
}

/** A configuration as it is kept on the disk, with the values of its variables. */
export type StoredConfig = { values: Config, origins: [name: string, origin: Origin][] }

/** `deployed`: as the release that runs has read it, for the options that a deploy reads anew */
export function storedConfig (config: Config, deployed: Partial<Config>): StoredConfig {
  const values = structuredClone(config) as Config & Record<string, unknown>
  const origins: StoredConfig['origins'] = []
  for (const { name, path: keys, takesEffect } of OPTIONS) {
    const from = takesEffect === 'deploy' ? deployed : config
    if (from === deployed) setAt(values, keys, valueIn(deployed, keys))
    const origin = ORIGINS.get(from)?.get(name)
    if (origin) origins.push([name, origin])
  }
  const { entry, cwd, runtime, appNode, launch } = { ...config, ...deployed }
  return { values: { ...values, entry, cwd, runtime, appNode, launch }, origins }
}

/** The same for another process: what a host has once is as `config` says. */
export function withHostOptions ({ values, origins }: StoredConfig, config: Config): StoredConfig {
  const next = structuredClone(values) as typeof values & Record<string, unknown>
  const own = OPTIONS.filter(({ name }) => isOfHost(name))
  for (const { path: keys } of own) setAt(next, keys, valueIn(config, keys))
  return { values: next, origins: [...origins.filter(([name]) => !isOfHost(name)), ...own.flatMap(({ name }) => {
    const origin = ORIGINS.get(config)?.get(name)
    return origin ? [[name, origin] as StoredConfig['origins'][number]] : []
  })] }
}

/** Returns null: this version takes it no more. */
export async function restoredConfig ({ values, origins }: StoredConfig): Promise<Config | null> {
  try {
    if (plainValues(givenWith(values, {})) === null) await loadSchema()
    const config = withValues(values, {})
    ORIGINS.set(config, new Map(origins))
    return config
  } catch (error) {
    if (error instanceof DeckError) return null
    throw error
  }
}

function fromFlags (flags: Record<string, unknown>, folder: string): Sources {
  // What a config file alone can set is no flag, and none is proposed for it.
  const known = OPTIONS.filter(({ kind }) => kind !== 'file')
  return Object.entries(flags).filter(([, value]) => value !== undefined).map(([key, value]) => {
    const option = known.find((each) => each.key === key)
    if (!option)
      throw new DeckError('unknown-option', `unknown option "${key}"${didYouMean(key, known.map((each) => each.key))}`)
    return givenOf(option, value, { source: 'flag', from: key === 'entry' ? 'entry' : option.flag, folder })
  })
}

function fromEnvironment (env: Record<string, string | undefined>, folder: string): Sources {
  refuseMistyped(Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX)))
  const set = OPTIONS.filter(({ kind, env: name }) => kind !== 'file' && env[name] !== undefined && env[name] !== '')
  return set.map((option) => givenOf(option, env[option.env], { source: 'environment', from: option.env, folder }))
}

function givenOf (option: Option, value: unknown,
  { source, from, folder }: { source: 'flag' | 'environment', from: string, folder: string }): [string, Given]
{
  return [option.name, { value: fromText(option, value), source: from, folder, origin: { source, from } }]
}

/** A name that is close to one of ours was meant to be it; any other may well belong to the app. */
function refuseMistyped (names: string[]) {
  const known = [...OPTIONS.map(({ env }) => env), ...OTHER_ENV]
  for (const name of names) {
    if (known.includes(name)) continue
    const match = nearestName(name.slice(ENV_PREFIX.length), known.map((each) => each.slice(ENV_PREFIX.length)))
    if (match !== null)
      throw new DeckError('unknown-option',
        `unknown option "${name}" in the environment (did you mean "${ENV_PREFIX}${match}"?)`)
  }
}

function fromApp (file: ConfigFile | null, app: string | undefined, cwd: string): Sources {
  const { name, shared, own, dataDir } = pickApp(file, app, cwd)
  return [...fromFile(shared), ...nameOfDeck(name, file), ...inFolder(dataDir), ...fromFile(own)]
}

function nameOfDeck (name: string | null, found: ConfigFile | null): Sources {
  if (name === null || !found) return []
  const { file } = found
  return [['name', { value: name, source: `apps in ${file}`, folder: path.dirname(file),
    origin: { source: 'file', from: file } }]]
}

function inFolder (dataDir: { value: string, folder: string } | null): Sources {
  return dataDir ? [['dataDir', { ...dataDir, source: 'dataDir' }]] : []
}

function fromFile (found: ConfigFile | null): Sources {
  if (!found) return []
  const { file, values } = found
  return fromValues(values, { where: ` in ${file}`, folder: path.dirname(file),
    origin: { source: 'file', from: file } })
}

/** `values`: nested, as in a config file; `where`: follows a name in messages */
function fromValues (values: Record<string, unknown>,
  { where, folder, origin }: { where: string, folder: string, origin: Origin }): Sources
{
  return flattenOptions(values, [])

  function flattenOptions (object: Record<string, unknown>, above: string[]): Sources {
    return Object.entries(object).flatMap(([key, value]) => {
      const name = [...above, key].join('.')
      const source = name + where
      if (OPTIONS.some((option) => option.name === name))
        return value === undefined ? [] : [[name, { value, source, folder, origin }]]
      if (!isGroup(name)) throw unknownKey(name, where)
      if (value === undefined) return []
      if (isObject(value)) return flattenOptions(value, [...above, key])
      throw invalid(source, 'an object', shownValue(value))
    })
  }
}

function isGroup (name: string) {
  return OPTIONS.some((option) => option.name.startsWith(`${name}.`))
}

function notAnOption (name: string) {
  if (!isGroup(name)) return unknownKey(name, '')
  const [{ name: example }] = OPTIONS.filter((option) => option.name.startsWith(`${name}.`))
  return new DeckError('unknown-option',
    `${name}: expected the name of one option, such as "${example}", received that of a group`)
}

function unknownKey (name: string, where: string) {
  const names = OPTIONS.map((option) => option.name)
  const groups = OPTIONS.map((option) => option.path.slice(0, -1).join('.')).filter(Boolean)
  return new DeckError('unknown-option',
    `unknown option "${name}"${where}${didYouMean(name, new Set([...names, ...groups]))}`)
}

/** Flags and variables are text; what does not look like its type is left as it is, for the schema to refuse. */
function fromText ({ kind, separator = ',' }: Option, value: unknown) {
  if (typeof value !== 'string') return value
  if (kind === 'integer' && /^\s*-?\d+(\.\d+)?\s*$/.test(value)) return Number(value)
  if (kind === 'switch' && /^(true|false)$/.test(value)) return value === 'true'
  if (kind === 'list' || kind === 'pairs') {
    const parts = value.split(separator).map((part) => part.trim()).filter(Boolean)
    return kind === 'list' ? parts : pairsOf(parts) ?? value
  }
  return value
}

/** Null: these are no pairs */
function pairsOf (parts: string[]): Record<string, string> | null {
  const pairs = parts.map((part) => /^([^=]+)=(.*)$/.exec(part))
  return pairs.every((pair) => pair !== null) ? Object.fromEntries(pairs.map(([, name, text]) => [name, text])) : null
}

/** Loads the schema of all options. A start does not wait for it if each of its values can be checked without it. */
export async function loadSchema () {
  LOADED.schema ??= (await import('./options.ts')).SCHEMA
}

/** @throws {DeckError} invalid-config */
async function checkOptions (given: Map<string, Given>): Promise<Values> {
  const plain = plainValues(given)
  if (plain) return plain
  await loadSchema()
  return valuesBySchema(given)
}

/** Null: only the schema can tell whether all of it is right */
function plainValues (given: Map<string, Given>): Values | null {
  const placed = placedOptions(given)
  return DEFAULTS !== null && placed.every(({ option, value }) => isPlain(option.plain, value))
    ? (nested(placed, structuredClone(DEFAULTS)) as Values)
    : null
}

/** `values`: to which they are added, each in its group */
function nested (placed: ReturnType<typeof placedOptions>, values: Record<string, unknown>) {
  for (const { option, value } of placed) setAt(values, option.path, value)
  return values
}

function placedOptions (given: Map<string, Given>) {
  return OPTIONS.flatMap((option) => {
    const entry = given.get(option.name)
    return entry ? [{ option, value: placedValue(entry, option) }] : []
  })
}

/** @throws {DeckError} invalid-config */
function valuesBySchema (given: Map<string, Given>): Values {
  const { schema } = LOADED
  if (schema === null) throw new Error('the schema of the options is not loaded')
  const result = schema.safeParse(nested(placedOptions(given), {}))
  if (result.success) return result.data
  const [issue] = result.error.issues
  const option = OPTIONS.find(({ path: keys }) => keys.every((key, index) => key === issue.path[index]))
  const wrong = option && given.get(option.name)
  if (!wrong) throw result.error
  const { name: optionName, expected, kind, isSecret, parts = {} } = option
  const [name, field] = issue.path.slice(option.path.length).map(String)
  if (Object.hasOwn(parts, field)) {
    const received = valueIn(wrong.value, [name, field])
    // A command may hold a secret.
    const shown = received === undefined ? 'nothing' : field === 'command' ? 'another value' : shownValue(received)
    throw invalid(wrong.source.replace(optionName, `${optionName}.${name}.${field}`), parts[field], shown)
  }
  if (kind === 'file' || isSecret)
    throw new DeckError('invalid-config', `${wrong.source}: expected ${expected}; wrong is ${placeOf(issue)}`)
  // One without a scheme may have a password too.
  throw invalid(wrong.source, expected, option.mayBeAddress ? 'another text' : shownValue(wrong.value))
}

function setAt (group: Record<string, unknown>, [key, ...below]: string[], value: unknown) {
  if (below.length === 0) {
    group[key] = value
    return
  }
  const inner = group[key] ??= {}
  if (isObject(inner)) setAt(inner, below, value)
}

/** @returns its value: a number for a text with its unit, and where a path in it starts from its folder */
function placedValue (given: Given, { kind, unit, pathIn, mayBeAddress = false }: Option): unknown {
  if (kind === 'integer' && typeof given.value === 'string')
    return numberWithUnit(given.value, unit) ?? given.value
  if (kind === 'path') return mayBeAddress && isAddress(String(given.value)) ? given.value : resolvedPath(given)
  return pathIn === undefined ? given.value : withPath(given, pathIn)
}

function resolvedPath ({ value, folder }: Pick<Given, 'value' | 'folder'>) {
  return typeof value === 'string' && value !== '' ? path.resolve(folder, value) : value
}

/** `field`: that is a path */
function withPath ({ value, folder }: Given, field: string) {
  if (!isObject(value) || value[field] === undefined) return value
  return { ...value, [field]: resolvedPath({ value: value[field], folder }) }
}

/** What is wrong, without what was received: it may be the secret. */
function placeOf (issue: core.$ZodIssue) {
  const place = issue.path.map((part, index) =>
    typeof part === 'number' ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`
  ).join('')
  if (issue.code === 'custom' && issue.params) {
    const { expected, received } = issue.params
    return `${place}: expected ${expected}${received === undefined ? '' : `, received ${received}`}`
  }
  return issue.code === 'unrecognized_keys'
    ? `${place}: unknown ${issue.keys.map((key) => `"${key.slice(0, 40)}"`).join(', ')}`
    : place
}

function shownValue (value: unknown) {
  const isJson = typeof value === 'string' || typeof value === 'object'
  // TypeError: only a program can give a circle or a BigInt.
  const text = attempt(() => String(isJson ? JSON.stringify(value) : value), 'something that is no JSON')
  const shown = withoutUrlSecrets(typeof value === 'function' ? 'a function' : text)
  return shown.length > 100 ? `${shown.slice(0, 99)}…` : shown
}
