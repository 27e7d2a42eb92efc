import { z } from 'zod'
import { DECK_NAME } from './apps.js'
import { isCron } from './cron.js'
import { LABEL_NAME, MEMBER_NAME } from './member-name.js'

const DAY_MS = 24 * 60 * 60 * 1000
// The longest that a Node timer can wait.
const MAX_TIMER_MS = 2 ** 31 - 1
export const MAX_WORKERS = 256
/** A path and perhaps a query, as the first line of a request has them. */
const URL_PATH = /^\/[!-"$-~]{0,2000}$/
/** Options, and groups of them, that an operator can change while the cluster runs. */
const LIVE = Object.freeze(['standby', 'ready.timeoutMs', 'drain', 'stop.termGraceMs', 'crash', 'restart', 'rollout', 'recycle', 'watchdog', 'keeper.hungAfterMs', 'releases.onDrift', 'logs.maxBytes', 'logs.maxFiles', 'notify'])
/** What may hold a secret is shown to nobody. */
const SECRET = Object.freeze(['args', 'execArgv', 'env', 'notify', 'hooks.beforeStart', 'hooks.beforeDeploy', 'hooks.afterDeploy', 'hooks.onCrash', 'fleet.token', 'fleet.servers'])

/** How a deploy goes about its work. `guardMs` is not of one rollout but of what follows it. */
const ROLLOUT = {
  order: choiceOption(['start-first', 'stop-first'], 'which goes first where a worker is replaced, in a rollout and otherwise; stop-first: the old one has ended before the new one is started, so that no two of a slot live side by side'),
  surge: z.union([z.int().min(1).max(MAX_WORKERS), z.string().regex(/^(100|[1-9]\d?)%$/)]).default(1).meta({
    kind: 'integer', hint: 'n|n%', expected: `an integer from 1 to ${MAX_WORKERS} or a share such as "25%"`, description: 'how many workers a deploy replaces at the same time'
  }),
  minReadyMs: millisecondsOption('how long a new worker has to be ready, and not crash, before the old one drains').default(0),
  canary: groupOf({
    workers: integerOption(0, MAX_WORKERS, 'new workers that first serve beside all old ones and are compared with them; 0: none').default(0),
    durationMs: integerOption(1000, MAX_TIMER_MS, 'how long these serve before they are judged', 'ms').default(30_000)
  }),
  limits: groupOf({
    crashes: integerOption(0, 10_000, 'how many workers of the new release may crash before the deploy has failed').default(0),
    errorRate: numberOption(0, 1, 'by how much the new workers\' share of 5xx answers may exceed the old ones\'').default(0.05),
    p99Ratio: numberOption(1, 1000, 'how many times the old workers\' latency the new ones\' may be, after warm-up').default(3),
    slowerMs: millisecondsOption('a difference of latency that is smaller than this does not count').default(50),
    warmupMs: millisecondsOption('what a worker answers for so long after its first answer does not count for latency, and the new workers have to be slower in three stretches of this length').default(5000),
    minRequests: integerOption(1, 1_000_000, 'with fewer answers the new workers are not judged').default(50),
    readyTimeoutMs: millisecondsOption('how long a new worker may take to get ready in a rollout; 0: ready.timeoutMs').default(0)
  }),
  progressDeadlineMs: integerOption(1000, MAX_TIMER_MS, 'a rollout without progress for this long, a soak aside, fails; paused time does not count', 'ms').default(600_000),
  onFailure: choiceOption(['rollback', 'hold'], 'what a failed deploy does: take back what it has replaced, or stop where it is and wait for an operator'),
  guardMs: millisecondsOption('how long a release is watched after its deploy: a crash loop rolls it back, once; 0: not at all').default(300_000)
}

/** Everything that can be set, as one schema: flags, environment names, help and error messages are derived from it. */
export const SCHEMA = z.strictObject({
  name: z.string().regex(DECK_NAME).optional().meta({
    kind: 'text', hint: 'name', expected: 'a name of letters, digits, ".", "_" and "-", at most 60', description: 'what this deck is called in the list of all, and addressed by with -n; default: the name of the app in the config file, else that of its package, else of its folder'
  }),
  entry: pathOption('what to start: a file, a folder, a command of an installed package (next), or npm, npx, yarn or pnpm with their args; default: "main" or the script "start" of the package.json in the working folder').optional(),
  script: textOption('a script of package.json to start, instead of an entry').optional(),
  args: listOption('arguments for the app', ' '),
  execArgv: listOption('options of node itself for every worker, such as --max-old-space-size=512', ' '),
  cwd: pathOption('the folder that the app runs in; default: the working folder').optional(),
  env: z.record(z.string().regex(/^[^=\0]+$/), z.union([z.string().regex(/^[^\0]*$/), z.null()])).default({}).meta({
    kind: 'file', hint: 'object', expected: 'an object of texts, null for a variable that is not to be set: { LOG_LEVEL: "debug", DEBUG: null }', description: 'variables for the workers, over those of the master; null unsets one. Read again at each deploy; in the config file only'
  }),
  envFile: pathOption('a file of variables for the workers (NAME=value, a line each), below those of `env`; read again at each deploy').optional(),
  workers: z.union([z.literal('max'), z.int().min(1).max(MAX_WORKERS)]).default('max').meta({
    kind: 'integer', hint: 'n|max', expected: `an integer from 1 to ${MAX_WORKERS} or "max"`, description: 'workers to run; max: one for each CPU that this process may use'
  }),
  standby: integerOption(0, MAX_WORKERS, 'further workers that have loaded the app and wait where it listens: one takes over the slot of a worker that dies within milliseconds').default(0),
  dispatch: choiceOption(['shared', 'sticky', 'round-robin'], 'how connections reach workers; shared: each worker accepts by itself, the one that has been idle longest, sticky: the kernel keeps all connections of one client address with one slot, round-robin: the master hands them out in turn'),
  sticky: groupOf({
    failoverMs: millisecondsOption('how long a slot may be without a worker that is ready before its clients go to the other slots').default(2000)
  }),
  instanceVariable: variableName('the variable that tells a worker its number, from 0 on; where the shell, `env` or `envFile` sets it, that value stays').default('NODE_APP_INSTANCE'),
  portPerSlot: integerOption(0, 65535 - MAX_WORKERS, 'each slot has a port of its own besides: with 4000, slot 1 has 4001, slot 2 has 4002; 0: none').default(0),
  dataDir: pathOption('where the history, the admin token and the logs are kept').default('.clusterdeck'),
  admin: groupOf({
    host: textOption('the address that the admin page listens on').default('127.0.0.1'),
    port: integerOption(0, 65535, 'the admin page\'s port; 0: any free one').default(9777),
    allowedHosts: listOption('more host names by which the admin page can be reached, as behind a proxy', ','),
    sessionTtlMs: millisecondsOption('how long a browser stays signed in').default(DAY_MS / 2),
    basePath: z.string().regex(/^(\/[\w.~-]+)+$/).optional().meta({ kind: 'text', hint: '/path', expected: 'a path such as "/deck", without a slash at its end', description: 'the path below which a proxy shows the admin page; default: that of admin.publicUrl' }),
    publicUrl: z.url({ protocol: /^https?$/ }).refine((url) => /^\w+:\/\/[^/?#@]+(\/[\w.~/-]*)?$/.test(url)).optional().meta({ kind: 'text', hint: 'url', expected: 'an address such as "https://ops.example.com/deck"', description: 'the address by which people reach the admin page, as behind a proxy: sign-in links have it' }),
    tls: groupOf({
      cert: pathOption('a certificate with its chain, as PEM: the admin page speaks https; a renewed one is taken within a minute').optional(),
      key: pathOption('the private key of that certificate, as PEM').optional()
    }),
    plainHttp: onOrOff('with an admin.host that others reach: also without TLS, where the token can be read on the way').default(false)
  }),
  start: groupOf({
    first: choiceOption(['one', 'all'], 'how a deck starts where no worker has ever been ready; one: the first worker alone until it is ready, then the others, so that they do not all make the tables of an empty database at once, all: all at once')
  }),
  ready: groupOf({
    signal: choiceOption(['auto', 'listening', 'message', 'online'], 'what says that a worker is ready; auto: that it listens, or has run for a while if it is no server, listening: that it listens, message: that it sends "ready", online: that it runs'),
    timeoutMs: millisecondsOption('how long a worker may take to get ready').default(30_000),
    addresses: choiceOption(['same', 'any'], 'where a new worker has to listen to be ready; same: wherever the worker before it did, so that an app which takes another port when its own is busy cannot leave the old one; any: anywhere'),
    path: urlPath('a path of the app, such as /health: a new worker accepts no connection until its app has answered there; ready.signal says when it is asked first').optional(),
    status: statusesOption('which answers say that it is ready'),
    intervalMs: integerOption(10, 60_000, 'how long after any other answer the app is asked again; then twice as long each time, up to a second', 'ms').default(100),
    probeTimeoutMs: integerOption(1, MAX_TIMER_MS, 'how long one answer may take', 'ms').default(5000),
    warmup: urlPaths('paths that are then requested in this order, before any connection; a bad answer is reported and stops nothing'),
    warmupRounds: integerOption(1, 10_000, 'how many times all of them are requested').default(1)
  }),
  drain: groupOf({
    idleGraceMs: millisecondsOption('how long a draining worker leaves idle connections open').default(5000),
    deadlineMs: millisecondsOption('how long a draining worker may take to answer what it has').default(30_000)
  }),
  stop: groupOf({
    termGraceMs: millisecondsOption('how long a worker has after SIGTERM before it is killed').default(5000),
    message: choiceOption(['object', 'text'], 'what a worker is sent before that SIGTERM; object: { type: "shutdown", from: "master" }, text: "shutdown", as PM2 does')
  }),
  crash: groupOf({
    graceMs: millisecondsOption('how long a worker that ends by an exception may answer the requests it has; the rest gets a 500. 0: it ends at once').default(1000)
  }),
  orphanMs: millisecondsOption('how long a worker goes on without a master if no next one takes over').default(60_000),
  keeper: groupOf({
    giveUpAfter: integerOption(0, 10_000, 'the keeper ends once its master has died this often in a row; 0: never').default(0),
    hungAfterMs: offOr(2000, MAX_TIMER_MS, 'how long the master may be silent before the keeper ends it and starts the next one; 0: no limit', 'ms').default(10_000)
  }),
  restart: groupOf({
    policy: choiceOption(['always', 'on-failure', 'never'], 'which ends of a worker bring another one; on-failure: all but exit code 0, never: none, as for a job'),
    cron: z.string().refine((value) => value === '' || isCron(value)).optional().meta({
      kind: 'text', hint: 'expression', expected: 'a cron expression of 5 fields, or 6 with seconds first, such as "0 4 * * *", or ""', description: 'when all workers are restarted, in the time zone of this machine, such as "0 4 * * *"; empty: never'
    }),
    minDelayMs: millisecondsOption('the first delay before a worker that keeps dying is started again').default(100),
    maxDelayMs: millisecondsOption('the longest such delay').default(30_000),
    resetAfterMs: millisecondsOption('how long a worker has to stay up for the delay to start anew').default(60_000),
    intensity: groupOf({
      restarts: integerOption(1, 10_000, 'a slot with more restarts than this within the window is shown as crash-looping').default(5),
      windowMs: millisecondsOption('the window in which restarts are counted').default(60_000)
    })
  }),
  rollout: groupOf(ROLLOUT),
  watchdog: groupOf({
    timeoutMs: offOr(2000, MAX_TIMER_MS, 'how long a worker\'s event loop may be silent before it is replaced and killed; 0: no limit', 'ms').default(10_000),
    stack: choiceOption(['on', 'off'], 'whether the stack of such a worker is read first; its inspector is open on the loopback address for that moment')
  }),
  recycle: groupOf({
    maxRssBytes: offOr(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER, 'a worker that holds more memory than this for 5 seconds is replaced; 0: no limit', 'bytes').default(0),
    maxAgeMs: offOr(1000, MAX_TIMER_MS, 'a worker is replaced once it has served this long, or up to a tenth less; 0: never', 'ms').default(0),
    maxRequests: offOr(1, Number.MAX_SAFE_INTEGER, 'a worker is replaced once it has begun this many requests, or up to a tenth fewer; 0: never').default(0)
  }),
  releases: groupOf({
    mode: choiceOption(['auto', 'snapshot', 'live'], 'what a deploy pins; auto: what the entry\'s symbolic link points to, or a plain folder as it is; snapshot: a copy of the app\'s package folder; live: nothing'),
    root: pathOption('the folder below which a deploy may name a path; without it, no deploy may').optional(),
    keep: integerOption(1, 100, 'how many releases are kept; one that a worker runs always is').default(10),
    onDrift: choiceOption(['mark', 'hold'], 'where the files of a release have changed under its workers: mark a replacement as drifted, or let its slot wait until they are restored or something is deployed')
  }),
  hooks: groupOf({
    beforeStart: hookOption('run once by a start, such as migrations, before the first worker is started: where it fails, so does the start; not where a master only replaces one that has died'),
    beforeDeploy: hookOption('run once by a deploy, such as migrations, before it replaces anything: where it fails, so does the deploy'),
    afterDeploy: hookOption('run after a deploy that has succeeded'),
    onCrash: hookOption('run when a worker has crashed, at most once a minute')
  }),
  watch: onOrOff('for development: roll out when a file changes that the workers have loaded').default(false),
  diagnostics: groupOf({
    maxFiles: integerOption(1, 10_000, 'how many files of diagnostics are kept').default(20),
    maxBytes: integerOption(1024 * 1024, Number.MAX_SAFE_INTEGER, 'how large they may be together; the newest stays in any case', 'bytes').default(1024 ** 3)
  }),
  notify: z.array(z.strictObject({
    url: z.url({ protocol: /^https?$/ }).refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url)),
    events: z.array(z.string().regex(/^[a-z*][a-z.*-]*(:[a-z*-]+)?$/)).min(1).optional(),
    secret: z.string().min(16)
  })).max(20).default([]).meta({
    kind: 'file', hint: 'list', expected: 'a list of { url: "https://…" without user and password, secret: "at least 16 characters", events?: ["worker.*", "worker.exited:hung", …] }', description: 'webhooks; in the config file only'
  }),
  fleet: groupOf({
    servers: z.array(z.string().regex(/^((nats|tls):\/\/)?[^\s,/]{1,500}$/).refine((address) => !address.includes('@') && URL.canParse(address.replace(/^(\w+:\/\/)?/, 'nats://')))).max(20).default([]).meta({
      kind: 'list', hint: 'list', separator: ',', words: ['fleet'], expected: 'a list of addresses such as "nats://10.0.0.5:4222", without user and password', description: 'servers of NATS with JetStream, by which decks on several machines see each other and roll out host by host (separated by commas); none: this deck is alone'
    }),
    name: z.string().regex(/^[A-Za-z\d][\w-]{0,59}$/).default('default').meta({ kind: 'text', hint: 'name', expected: 'a name of letters, digits, "_" and "-", at most 60', description: 'of the fleet: decks of one name belong together' }),
    member: z.string().regex(MEMBER_NAME).optional().meta({ kind: 'text', hint: 'name', expected: 'a name of letters, digits, "_" and "-", at most 100', description: 'what this deck is called there, as no other one is; default: the names of the host and of the app' }),
    labels: z.record(z.string().regex(LABEL_NAME), z.string().max(200)).default({}).meta({ kind: 'pairs', hint: 'label=value', separator: ',', expected: 'labels and their values such as zone=a,disk=ssd', description: 'by which members are picked and put in order (separated by commas)' }),
    accept: choiceOption(['read', 'operate', 'nothing'], 'what other members may do to this one: nothing, read what its viewers can, or do what its operators can: restart it, deploy to it'),
    token: textOption('of the servers; better as a variable, for others see flags').optional(),
    credentials: pathOption('a file of NATS credentials (.creds)').optional(),
    tls: groupOf({
      ca: pathOption('the certificate of who signs those of the servers, as PEM').optional(),
      cert: pathOption('a certificate for this deck, as PEM').optional(),
      key: pathOption('its private key, as PEM').optional()
    })
  }),
  logs: groupOf({
    maxBytes: integerOption(64 * 1024, 2 ** 40, 'how large a log file of a slot gets before its older lines are moved into another one').default(10 * 1024 * 1024),
    maxFiles: integerOption(1, 1000, 'how many such files are kept of each slot and stream').default(5),
    mirror: choiceOption(['auto', 'on', 'off'], 'whether the master repeats the output of the workers; auto: if its own goes to a terminal')
  }),
  history: groupOf({
    maxAgeMs: integerOption(1000, 3650 * DAY_MS, 'how long events are kept', 'ms').default(30 * DAY_MS),
    maxEvents: integerOption(1000, 100_000_000, 'how many events are kept; messages of the app have a tenth of it beside them').default(1_000_000)
  })
})

/**
 * One thing that can be set.
 * @typedef {object} Option
 * @property {string} name   its path in a config file, `ready.timeoutMs`
 * @property {string[]} path
 * @property {string} key    `readyTimeoutMs`, as in the flags object
 * @property {string} flag   `--ready-timeout-ms`
 * @property {string} env    `CLUSTERDECK_READY_TIMEOUT_MS`
 * @property {'integer' | 'text' | 'path' | 'choice' | 'list' | 'pairs' | 'switch' | 'file'} kind `switch`: its flag has no value; `file`: only a config file can say it
 * @property {string} hint   what stands for the value in help
 * @property {string} expected
 * @property {string} description
 * @property {string} [separator] of a list that is written as one string
 * @property {string[]} [words]  of its flag and its variable, where these are not those of its name
 * @property {unknown} [fallback] the default
 * @property {boolean} isLive  whether it can change while the cluster runs
 * @property {boolean} isSecret  whether its value may hold a secret
 */

/** @type {readonly Option[]} */
export const OPTIONS = Object.freeze(describeOptions(SCHEMA, []))

/** @param {any} schema @param {string[]} path @returns {Option[]} */
function describeOptions (schema, path) {
  return Object.entries(schema.shape).flatMap(([key, field]) => {
    const here = [...path, key]
    const inner = unwrapField(field)
    return inner.def.type === 'object' && !metaOf(field) ? describeOptions(inner, here) : [toOption(here, field)]
  })
}

/** @param {string[]} path @param {any} field @returns {Option} */
function toOption (path, field) {
  const name = path.join('.')
  const meta = metaOf(field)
  const words = /** @type {string[] | undefined} */ (meta.words) ?? path.flatMap((part) => part.split(/(?=[A-Z])/)).map((word) => word.toLowerCase())
  return {
    ...meta,
    name,
    path,
    key: words[0] + words.slice(1).map((word) => word[0].toUpperCase() + word.slice(1)).join(''),
    flag: `--${words.join('-')}`,
    env: `CLUSTERDECK_${words.join('_').toUpperCase()}`,
    fallback: field.safeParse(undefined).data,
    isLive: LIVE.some((place) => name === place || name.startsWith(`${place}.`)),
    isSecret: SECRET.includes(name)
  }
}

/** Defaults wrap the schema that carries the description. @param {any} field */
function metaOf (field) {
  for (let schema = field; schema; schema = schema.def.innerType) {
    const meta = schema.meta()
    if (meta) return meta
  }
}

/** @param {any} field */
function unwrapField (field) {
  let schema = field
  while (schema.def.innerType) schema = schema.def.innerType
  return schema
}

/** @template {import('zod').ZodRawShape} T @param {T} shape */
function groupOf (shape) {
  return z.strictObject(shape).prefault(/** @type {any} */ ({}))
}

/** @param {string} description */
function hookOption (description) {
  return z.strictObject({
    command: z.array(z.string().regex(/^[^\0]*$/)).min(1).refine(([program]) => program !== ''),
    timeoutMs: z.int().min(100).max(MAX_TIMER_MS).default(300_000)
  }).optional().meta({
    kind: 'file', hint: 'object', expected: 'an object { command: ["npm", "run", "migrate"], timeoutMs?: from 100 }', description: `${description}. Read again at each deploy; in the config file only`
  })
}

/** @param {number} min @param {number} max @param {string} description @param {string} [hint] */
function integerOption (min, max, description, hint = 'n') {
  return z.int().min(min).max(max).meta({ kind: 'integer', hint, expected: `an integer from ${min} to ${max}`, description })
}

/** @param {number} min @param {number} max @param {string} description @param {string} [hint] */
function offOr (min, max, description, hint = 'n') {
  return z.union([z.int().min(0).max(0), z.int().min(min).max(max)]).meta({ kind: 'integer', hint, expected: `0 or an integer from ${min} to ${max}`, description })
}

/** @param {number} min @param {number} max @param {string} description */
function numberOption (min, max, description) {
  return z.number().min(min).max(max).meta({ kind: 'integer', hint: 'x', expected: `a number from ${min} to ${max}`, description })
}

/** @param {string} description */
function millisecondsOption (description) {
  return integerOption(0, MAX_TIMER_MS, description, 'ms')
}

/** @template {string} const T @param {readonly [T, ...T[]]} values the first is the default @param {string} description */
function choiceOption (values, description) {
  const expected = `one of ${values.map((value) => `"${value}"`).join(', ')}`
  return z.enum(values).default(/** @type {any} */ (values[0])).meta({ kind: 'choice', hint: values.join('|'), expected, description })
}

/** @param {string} description */
function onOrOff (description) {
  return z.boolean().meta({ kind: 'switch', hint: 'true|false', expected: 'true or false', description })
}

/** @param {string} description */
function textOption (description) {
  return z.string().min(1).meta({ kind: 'text', hint: 'text', expected: 'a text that is not empty', description })
}

/** @param {string} description */
function variableName (description) {
  return z.string().regex(/^(?!CLUSTERDECK_)[A-Za-z_][A-Za-z0-9_]*$/).meta({ kind: 'text', hint: 'name', expected: 'the name of a variable that is not one of CLUSTERDECK_', description })
}

/** @param {string} description */
function urlPath (description) {
  return z.string().regex(URL_PATH).meta({ kind: 'text', hint: '/path', expected: 'a path such as "/health"', description })
}

/** @param {string} description */
function urlPaths (description) {
  return z.array(z.string().regex(URL_PATH)).max(1000).default([]).meta({
    kind: 'list', hint: 'list', separator: ' ', expected: 'a list of paths such as "/health"', description: `${description} (separated by spaces)`
  })
}

/** In a config file also as one text or as numbers. @param {string} description */
function statusesOption (description) {
  const range = z.string().regex(/^[1-5]\d\d(-[1-5]\d\d)?$/).refine((value) => {
    const [from, to = from] = value.split('-')
    return from <= to
  })
  const givenStatuses = (/** @type {unknown} */ value) => typeof value === 'string' ? value.split(',').map((part) => part.trim()) : typeof value === 'number' ? [value] : value
  const asTexts = (/** @type {unknown} */ value) => Array.isArray(value) ? value.map((each) => typeof each === 'number' ? String(each) : each) : value
  return z.preprocess((value) => asTexts(givenStatuses(value)), z.array(range).min(1).max(100)).default(['200-399']).meta({
    kind: 'list', hint: 'list', separator: ',', expected: 'HTTP statuses such as 200, "200-399" or a list of them', description: `${description} (separated by commas)`
  })
}

/** @param {string} description */
function pathOption (description) {
  return z.string().min(1).meta({ kind: 'path', hint: 'path', expected: 'a path', description })
}

/** @param {string} description @param {string} separator */
function listOption (description, separator) {
  const named = separator === ',' ? 'commas' : 'spaces'
  return z.array(z.string()).default([]).meta({ kind: 'list', hint: 'list', separator, expected: 'a list of texts', description: `${description} (separated by ${named})` })
}

/** What a caller may say of one rollout: the same, where it differs, and nothing that is not said. */
export const STRATEGY = (() => {
  const { guardMs, ...fields } = ROLLOUT
  return asWish(z.strictObject(fields))
})()

/** What may change while the cluster runs, by the names of the options. */
export const CHANGE = z.strictObject(Object.fromEntries(OPTIONS.filter(({ isLive }) => isLive).map(({ name, path }) => [name, asWish(fieldAt(path))])))

/** @param {string[]} path @returns {any} */
function fieldAt (path) {
  return path.reduce((schema, key) => unwrapField(schema).shape[key], /** @type {any} */ (SCHEMA))
}

/** @param {any} schema @returns {any} every field optional, without its default, described by what it expects */
function asWish (schema) {
  const bare = unwrapField(schema)
  const { description, expected } = metaOf(schema) ?? {}
  if (bare.def.type !== 'object') return bare.optional().meta({ description, expected })
  return z.strictObject(Object.fromEntries(Object.entries(bare.shape).map(([key, field]) => [key, asWish(field)]))).optional().describe('an object')
}
