import path from 'node:path'
import { pickApp } from './apps.js'
import { readConfigFile } from './file.js'
import { cpuCount } from './cpu-count.js'
import { checkExposure } from './exposure.js'
import { deepFreeze } from './deep-freeze.js'
import { DeckError } from '../errors.js'
import { movedTo, resolveLaunch } from '../launch/launch.js'
import { didYouMean, nearestName } from './nearest.js'
import { MAX_WORKERS, OPTIONS, SCHEMA } from './options.js'
import { asNamed, pinPath } from '../system/working-folder.js'

/** @typedef {import('./options.js').Option} Option */
/** @typedef {{ source: 'file' | 'environment' | 'flag' | 'program', from: string | null }} Origin where a value comes from; `from`: the file, the variable or the flag */
/** @typedef {{ value: unknown, source: string, folder: string, origin?: Origin }} Given a value, the name under which it was given, and what its relative path starts from */
/**
 * @typedef {Readonly<Omit<import('zod').infer<typeof SCHEMA>, 'entry' | 'cwd' | 'workers'> & { entry: string, cwd: string, workers: number, launch?: { said: string | null, notes: string[] } }>} Config
 * `entry`, `args`, `execArgv`, `env`, `cwd`: as Node is to run them, whatever was asked for; `launch`: what was made of that
 */

const ENV_PREFIX = 'CLUSTERDECK_'
/** Members tell them with each word, and no word of more than 16 KiB is heard. */
const MAX_LABELS_BYTES = 8192
/** By configuration and name of the option. @type {WeakMap<Config, Map<string, Origin | undefined>>} */
const ORIGINS = new WeakMap()
// Set for workers and hooks, or read by the commands that talk to a running master.
const OTHER_ENV = ['SLOT', 'RELEASE', 'BOOT', 'URL', 'TOKEN', 'TOKEN_FILE', 'TIMEOUT', 'CONFIG', 'APP', 'KEEPER', 'KEPT', 'KEPT_FOLDER', 'HOOK', 'FROM_RELEASE', 'ROLLOUT',
  'CRASH', 'CRASH_GROUP', 'CRASH_FINGERPRINT', 'CRASH_SLOT', 'CRASH_CAUSE', 'CRASH_MISSED', 'RUNTIME_DIR'].map((name) => ENV_PREFIX + name)

/**
 * What a master runs with: flags over environment over config file over defaults.
 * @param {object} [sources]
 * @param {Record<string, unknown>} [sources.flags] by option key (`adminPort`), `config`: the file to read, and `app`: which of its apps; values may be strings
 * @param {Record<string, string | undefined>} [sources.env]
 * @param {string} [sources.cwd]
 * @param {string} [sources.home] where that was at the start: the data folder stays there, wherever a link on the way leads by now
 * @param {() => number} [sources.countCpus] what `max` means
 * @param {boolean} [sources.isAgain] this process has read the file before, and it may have changed since
 * @param {string} [sources.launchIn] the folder to look in for what is started by a name or a script, instead of the working folder
 * @returns {Promise<Config>}
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function loadConfig ({ flags = {}, env = process.env, cwd = process.cwd(), home, countCpus = cpuCount, isAgain = false, launchIn } = {}) {
  const { config: named, app, ...flagValues } = flags
  const file = await readConfigFile(/** @type {string | undefined} */ (named ?? (env.CLUSTERDECK_CONFIG || undefined)), cwd, { isAgain })
  return toConfig([...fromApp(file, /** @type {string | undefined} */ (app ?? (env.CLUSTERDECK_APP || undefined)), cwd), ...fromEnvironment(env, cwd), ...fromFlags(flagValues, cwd)], { cwd, home, countCpus, launchIn })
}

/**
 * What a master runs with that a program has started: its options, as a config file has them, over those of the file that
 * it names, if it does. Nothing else is read.
 * @param {Record<string, unknown>} options
 * @param {{ configFile?: string, cwd?: string, countCpus?: () => number, isAgain?: boolean, launchIn?: string }} [sources] as of loadConfig
 * @returns {Promise<Config>}
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function configFromOptions (options, { configFile, cwd = process.cwd(), countCpus = cpuCount, isAgain = false, launchIn } = {}) {
  const file = configFile === undefined ? null : await readConfigFile(configFile, cwd, { isAgain, isGuest: true })
  return toConfig([...fromApp(file, undefined, cwd), ...fromValues(options, { where: '', folder: cwd, origin: { source: 'program', from: null } })], { cwd, countCpus, launchIn })
}

/** @param {[string, Given][]} sources what comes later counts @param {{ cwd: string, home?: string, countCpus: () => number, launchIn?: string }} place @returns {Config} */
function toConfig (sources, { cwd, home, countCpus, launchIn }) {
  const given = oneOf('entry', 'script', sources)
  const values = validateOptions(given)
  if (values.watch && values.releases.mode === 'snapshot') {
    throw new DeckError('invalid-config', `${given.get('watch')?.source}: expected another releases.mode than "snapshot", whose workers run no file that anybody edits; --releases-mode live runs them in place`)
  }
  checkTogether(values, (name) => given.get(name)?.source ?? name)
  if (values.portPerSlot > 0 && values.dispatch === 'round-robin') {
    throw new DeckError('invalid-config', `${given.get('portPerSlot')?.source}: expected another dispatch than "round-robin", where the workers have no sockets`)
  }
  checkExposure(values.admin)
  checkFleet(values.fleet)
  const { said, notes, env, ...launch } = launchOf(wishOf(values, given, cwd), launchIn)
  const config = deepFreeze({
    ...values,
    ...launch,
    ...(said !== null && { launch: { said, notes } }),
    env: { ...env, ...values.env },
    admin: checkedAdmin(values.admin),
    dataDir: pinPath(path.resolve(cwd, values.dataDir), home === undefined ? asNamed(cwd) : { named: cwd, real: home }),
    workers: values.workers === 'max' ? Math.min(countCpus(), MAX_WORKERS) : values.workers
  })
  ORIGINS.set(config, new Map([...given].map(([name, { origin }]) => [name, origin])))
  return config
}

/**
 * Of two options that say the same the one from the stronger source counts.
 * @param {string} one @param {string} other @param {[string, Given][]} sources what comes later counts
 * @returns {Map<string, Given>}
 * @throws {DeckError} invalid-config
 */
function oneOf (one, other, sources) {
  const given = new Map(sources)
  const [first, second] = [given.get(one), given.get(other)]
  if (!first || !second) return given
  if (first.origin?.source === second.origin?.source) throw new DeckError('invalid-config', `${second.source}: expected either ${one} or ${other}, received both`)
  given.delete(sources.findLast(([name]) => name === one || name === other)?.[0] === one ? other : one)
  return given
}

/** @param {import('../launch/launch.js').Wish} wish @param {string} [folder] @returns {ReturnType<typeof resolveLaunch>} */
function launchOf (wish, folder) {
  const launch = resolveLaunch(wish)
  return folder === undefined || launch.said === null ? launch : resolveLaunch(movedTo(folder, wish))
}

/** @param {ReturnType<typeof validateOptions>} values @param {Map<string, Given>} given @param {string} cwd @returns {import('../launch/launch.js').Wish} */
function wishOf ({ script, args, execArgv, cwd: own }, given, cwd) {
  const entry = given.get('entry')
  return { entry: /** @type {string | undefined} */ (entry?.value), script, args, execArgv, cwd: own ?? cwd, folder: entry?.folder ?? cwd, source: (given.get('script') ?? entry)?.source }
}

/**
 * What one option has against another.
 * @param {Pick<Config, 'standby' | 'dispatch' | 'rollout' | 'restart'>} values @param {(name: string) => string} [sourceOf] @throws {DeckError} invalid-config
 */
function checkTogether ({ standby, dispatch, rollout, restart }, sourceOf = (name) => name) {
  const isStopFirst = rollout.order === 'stop-first'
  if (standby > 0) {
    const without = `${sourceOf('standby')}: expected 0 with`
    if (dispatch === 'round-robin') throw new DeckError('invalid-config', `${without} dispatch "round-robin", where a worker cannot be held before it listens, received ${standby}`)
    if (isStopFirst) throw new DeckError('invalid-config', `${without} rollout.order "stop-first", as a standby worker runs the app beside those of the slots, received ${standby}`)
    if (restart.policy !== 'always') throw new DeckError('invalid-config', `${without} restart.policy "${restart.policy}", as a standby worker would do the work of a job before it has a slot, received ${standby}`)
  }
  if (isStopFirst && rollout.canary.workers > 0) {
    throw new DeckError('invalid-config', `${sourceOf('rollout.canary.workers')}: expected 0 with rollout.order "stop-first", as a canary serves beside all old workers, received ${rollout.canary.workers}`)
  }
}

/**
 * @param {Config['admin']} admin
 * @returns {Config['admin']}
 * @throws {DeckError} invalid-config
 */
function checkedAdmin (admin) {
  const { basePath, publicUrl, tls } = admin
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw new DeckError('invalid-config', `admin.tls.${tls.cert ? 'key' : 'cert'}: expected a file beside admin.tls.${tls.cert ? 'cert' : 'key'}, received nothing`)
  }
  const shownBelow = publicUrl === undefined ? undefined : new URL(publicUrl).pathname.replace(/\/+$/, '')
  if (shownBelow !== undefined && basePath !== undefined && basePath !== shownBelow) {
    throw new DeckError('invalid-config', `admin.basePath: expected ${JSON.stringify(shownBelow)}, the path of admin.publicUrl, received ${JSON.stringify(basePath)}`)
  }
  return basePath === undefined && shownBelow ? { ...admin, basePath: shownBelow } : admin
}

/** @param {Config['fleet']} fleet @throws {DeckError} invalid-config */
function checkFleet ({ token, credentials, labels, tls: { cert, key } }) {
  const bytes = Buffer.byteLength(JSON.stringify(labels))
  if (bytes > MAX_LABELS_BYTES) throw new DeckError('invalid-config', `fleet.labels: expected at most ${MAX_LABELS_BYTES} bytes in all, received ${bytes}`)
  if ((cert === undefined) !== (key === undefined)) throw new DeckError('invalid-config', `fleet.tls.${cert ? 'key' : 'cert'}: expected a file beside fleet.tls.${cert ? 'cert' : 'key'}, received nothing`)
  if (token !== undefined && credentials !== undefined) throw new DeckError('invalid-config', 'fleet.token: expected either fleet.token or fleet.credentials, received both')
}

/** @param {Config} config @param {string} name of an option @returns {Origin | null} null: nobody has said anything */
export function originOf (config, name) {
  return ORIGINS.get(config)?.get(name) ?? null
}

/** @param {Config} config @returns {string | null} the config file that has said something of it */
export function configFileOf (config) {
  return [...ORIGINS.get(config)?.values() ?? []].find((origin) => origin?.source === 'file')?.from ?? null
}

/** @param {Config} config @param {Pick<Option, 'path'>} option */
export function valueOf (config, { path: keys }) {
  return keys.reduce((/** @type {any} */ group, key) => group[key], config)
}

/**
 * The same configuration with other values, which are held against the same schema as at a start.
 * @param {Config} config @param {Record<string, unknown>} wanted by the name of the option, `drain.deadlineMs`
 * @returns {Config}
 * @throws {DeckError} invalid-config, unknown-option
 */
export function withValues (config, wanted) {
  for (const name of Object.keys(wanted)) if (!OPTIONS.some((option) => option.name === name)) throw notAnOption(name)
  const known = OPTIONS.map((option) => /** @type {const} */ ([option.name, Object.hasOwn(wanted, option.name) ? wanted[option.name] : valueOf(config, option)]))
  const given = known.filter(([, value]) => value !== undefined).map(([name, value]) => /** @type {const} */ ([name, { value, source: name, folder: config.cwd }]))
  const next = /** @type {Config} */ (deepFreeze(validateOptions(new Map(given))))
  checkTogether(next)
  return next
}

/** @param {Record<string, unknown>} flags @param {string} folder @returns {[string, Given][]} */
function fromFlags (flags, folder) {
  return Object.entries(flags).filter(([, value]) => value !== undefined).map(([key, value]) => {
    const option = OPTIONS.find((each) => each.key === key && each.kind !== 'file')
    if (!option) throw new DeckError('unknown-option', `unknown option "${key}"${didYouMean(key, OPTIONS.map((each) => each.key))}`)
    const source = key === 'entry' ? 'entry' : option.flag
    return [option.name, { value: fromText(option, value), source, folder, origin: { source: 'flag', from: source } }]
  })
}

/** @param {Record<string, string | undefined>} env @param {string} folder @returns {[string, Given][]} */
function fromEnvironment (env, folder) {
  refuseMistyped(Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX)))
  return OPTIONS.filter(({ kind, env: name }) => kind !== 'file' && env[name] !== undefined && env[name] !== '').map((option) => {
    return [option.name, { value: fromText(option, env[option.env]), source: option.env, folder, origin: { source: 'environment', from: option.env } }]
  })
}

/**
 * A name that is close to one of ours was meant to be it; any other may well belong to the app.
 * @param {string[]} names
 */
function refuseMistyped (names) {
  const known = [...OPTIONS.map(({ env }) => env), ...OTHER_ENV]
  for (const name of names) {
    if (known.includes(name)) continue
    const match = nearestName(name.slice(ENV_PREFIX.length), known.map((each) => each.slice(ENV_PREFIX.length)))
    if (match !== null) throw new DeckError('unknown-option', `unknown option "${name}" in the environment (did you mean "${ENV_PREFIX}${match}"?)`)
  }
}

/** @param {import('./apps.js').ConfigFile | null} file @param {string | undefined} app @param {string} cwd @returns {[string, Given][]} */
function fromApp (file, app, cwd) {
  const { name, shared, own, dataDir } = pickApp(file, app, cwd)
  return [...fromFile(shared), ...nameOfDeck(name, file), ...inFolder(dataDir), ...fromFile(own)]
}

/** @param {string | null} name @param {import('./apps.js').ConfigFile | null} file @returns {[string, Given][]} */
function nameOfDeck (name, file) {
  return name === null || !file ? [] : [['name', { value: name, source: `apps in ${file.file}`, folder: path.dirname(file.file), origin: { source: 'file', from: file.file } }]]
}

/** @param {{ value: string, folder: string } | null} dataDir @returns {[string, Given][]} */
function inFolder (dataDir) {
  return dataDir ? [['dataDir', { ...dataDir, source: 'dataDir' }]] : []
}

/** @param {import('./apps.js').ConfigFile | null} file @returns {[string, Given][]} */
function fromFile (file) {
  return file ? fromValues(file.values, { where: ` in ${file.file}`, folder: path.dirname(file.file), origin: { source: 'file', from: file.file } }) : []
}

/**
 * @param {Record<string, unknown>} values nested, as in a config file @param {{ where: string, folder: string, origin: Origin }} source `where`: is said behind a name
 * @returns {[string, Given][]}
 */
function fromValues (values, { where, folder, origin }) {
  return flattenOptions(values, [])

  /** @param {Record<string, unknown>} object @param {string[]} above @returns {[string, Given][]} */
  function flattenOptions (object, above) {
    return Object.entries(object).flatMap(([key, value]) => {
      const name = [...above, key].join('.')
      const source = name + where
      if (OPTIONS.some((option) => option.name === name)) return value === undefined ? [] : [[name, { value, source, folder, origin }]]
      if (!isGroup(name)) throw unknownKey(name, where)
      if (value === undefined) return []
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) return flattenOptions(/** @type {any} */ (value), [...above, key])
      throw new DeckError('invalid-config', `${source}: expected an object, received ${shownValue(value)}`)
    })
  }
}

/** @param {string} name */
function isGroup (name) {
  return OPTIONS.some((option) => option.name.startsWith(`${name}.`))
}

/** @param {string} name */
function notAnOption (name) {
  if (!isGroup(name)) return unknownKey(name, '')
  const [{ name: example }] = OPTIONS.filter((option) => option.name.startsWith(`${name}.`))
  return new DeckError('unknown-option', `${name}: expected the name of one option, such as "${example}", received that of a group`)
}

/** @param {string} name @param {string} where */
function unknownKey (name, where) {
  const groups = OPTIONS.map((option) => option.path.slice(0, -1).join('.')).filter(Boolean)
  return new DeckError('unknown-option', `unknown option "${name}"${where}${didYouMean(name, new Set([...OPTIONS.map((option) => option.name), ...groups]))}`)
}

/**
 * Flags and variables are text; what does not look like its type is left as it is, for the schema to refuse.
 * @param {Option} option @param {unknown} value
 */
function fromText ({ kind, separator = ',' }, value) {
  if (typeof value !== 'string') return value
  if (kind === 'integer' && /^\s*-?\d+(\.\d+)?\s*$/.test(value)) return Number(value)
  if (kind === 'switch' && /^(true|false)$/.test(value)) return value === 'true'
  if (kind === 'list' || kind === 'pairs') {
    const parts = value.split(separator).map((part) => part.trim()).filter(Boolean)
    return kind === 'list' ? parts : pairsOf(parts) ?? value
  }
  return value
}

/** @param {string[]} parts @returns {Record<string, string> | null} null: these are no pairs */
function pairsOf (parts) {
  const pairs = parts.map((part) => /^([^=]+)=(.*)$/.exec(part))
  return pairs.every((pair) => pair !== null) ? Object.fromEntries(pairs.map(([, name, text]) => [name, text])) : null
}

/** @param {Map<string, Given>} given */
function validateOptions (given) {
  /** @type {any} */
  const nested = {}
  for (const { name, path: keys, kind } of OPTIONS) {
    const entry = given.get(name)
    if (!entry) continue
    let group = nested
    for (const key of keys.slice(0, -1)) group = group[key] ??= {}
    const { value, folder } = entry
    group[/** @type {string} */ (keys.at(-1))] = kind === 'path' && typeof value === 'string' && value !== '' ? path.resolve(folder, value) : value
  }
  const result = SCHEMA.safeParse(nested)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const option = /** @type {Option} */ (OPTIONS.find(({ path: keys }) => keys.every((key, index) => key === issue.path[index])))
  const { value, source } = /** @type {Given} */ (given.get(option.name))
  if (option.kind === 'file' || option.isSecret) throw new DeckError('invalid-config', `${source}: expected ${option.expected}; wrong is ${placeOf(issue)}`)
  throw new DeckError('invalid-config', `${source}: expected ${option.expected}, received ${shownValue(value)}`)
}

/** What is wrong, without what was received: it may be the secret. @param {import('zod').core.$ZodIssue} issue */
function placeOf (issue) {
  const place = issue.path.reduce((/** @type {string} */ text, part) => typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`, '')
  return issue.code === 'unrecognized_keys' ? `${place}: unknown ${issue.keys.map((key) => `"${key.slice(0, 40)}"`).join(', ')}` : place
}

/** @param {unknown} value */
function shownValue (value) {
  const text = typeof value === 'string' || typeof value === 'object' ? asJson(value) : typeof value === 'function' ? 'a function' : String(value)
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}

/** @param {unknown} value */
function asJson (value) {
  try {
    return String(JSON.stringify(value))
  } catch {
    // TypeError: with a circle or a BigInt in it, as only a program can say it.
    return 'something that is no JSON'
  }
}
