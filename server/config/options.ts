import { z, type ZodRawShape } from 'zod'
import { succeeds } from '../errors.ts'
import { ALERT, HTTP_URL } from './alert.ts'
import { alertFlaw } from './alert-kinds.ts'
import { DECK_NAME } from './apps.ts'
import { isCron, isTimeZone } from './cron.ts'
import { isAddress } from './is-address.ts'
import { MAX_WORKERS } from './max-workers.ts'
import { isProxySource } from './proxy-auth.ts'
import { UNITS, type Unit } from './units.ts'
import { readyLineOf } from '../lifecycle/ready-line.ts'
import { LABEL_NAME, MEMBER_NAME } from './member-name.ts'

/** `switch`: its flag has no value; `file`: only a config file can say it. */
type Kind = 'integer' | 'text' | 'path' | 'choice' | 'list' | 'pairs' | 'switch' | 'file'
/** What the schema of an option says of it. */
type About = {
  kind: Kind,
  /** what stands for the value in help */
  hint: string,
  expected: string,
  description: string,
  /** of a path: it may also be an address, where something is fetched from */
  mayBeAddress?: boolean,
  /** of a list that is written as one string */
  separator?: string,
  /** of an object of objects, what is expected of each field of these */
  parts?: Readonly<Record<string, string>>,
  /** the field of an object that is a path */
  pathIn?: string,
  /** of its flag and its variable, where these are not those of its name */
  words?: string[],
  /** the name of its variable behind CLUSTERDECK_, where that is another one */
  variable?: string
}

const ABOUT: z.core.$ZodRegistry<About> = z.registry()

const DAY_MS = 24 * 60 * 60 * 1000
// The longest that a Node timer can wait.
const MAX_TIMER_MS = 2 ** 31 - 1
const BUILD_TIMEOUT_MS = 900_000
/** `/jobs/runs` is a path of the API, and `command.log` has the commands of `clusterdeck run`. */
const TAKEN_JOB_NAMES = Object.freeze(['runs', 'command'])
const EXAMPLES: Readonly<Record<Unit, string>> = Object.freeze({ ms: '30 s', bytes: '512 MB', share: '5 %',
  times: '3 times' })
/** A path and perhaps a query, as the first line of a request has them. */
const URL_PATH = /^\/[!-"$-~]{0,2000}$/

/** Options, and groups of them, that an operator can change while the cluster runs. */
const LIVE = Object.freeze(['standby', 'rebalance', 'ready.timeoutMs', 'drain', 'stop.termGraceMs', 'crash', 'restart',
  'rollout', 'limits', 'recycle', 'watchdog', 'keeper.hungAfterMs', 'releases.onDrift', 'logs.maxBytes',
  'logs.maxFiles', 'diagnostics.leaks', 'diagnostics.profiling', 'alerts', 'heartbeat'])

/** Options that each deploy reads again. The others count from a start on. */
const AT_DEPLOY = Object.freeze(['entry', 'script', 'args', 'execArgv', 'node', 'cwd', 'env', 'envFile', 'secrets',
  'hooks', 'jobs', 'releases.git', 'releases.shared', 'releases.exclude'])

/** Options that are never shown, as they may hold a secret. */
const SECRET = Object.freeze(['args', 'execArgv', 'env', 'secrets', 'alerts', 'heartbeat.url', 'hooks.build',
  'hooks.beforeStart', 'hooks.beforeDeploy', 'hooks.afterDeploy', 'hooks.onCrash', 'jobs', 'fleet.token',
  'fleet.servers', 'admin.proxyAuth.secret'])

/** Options that help and manual list last: their defaults suit nearly every app. */
const RARE = Object.freeze(['sticky.idleMs', 'sticky.failoverMs', 'rebalance', 'instanceVariable', 'compileCache',
  'portPerSlot', 'orphanMs', 'admin.sessionTtlMs', 'admin.basePath', 'start.first', 'ready.addresses',
  'ready.intervalMs', 'ready.probeTimeoutMs', 'ready.warmupRounds', 'drain.idleGraceMs', 'drain.stalledMs',
  'drain.spreadMs', 'stop.termGraceMs', 'stop.message', 'stop.signal', 'crash.graceMs', 'keeper', 'restart.minDelayMs',
  'restart.maxDelayMs', 'restart.resetAfterMs', 'restart.intensity', 'rollout.limits', 'rollout.progressDeadlineMs',
  'watchdog.stack', 'releases.onDrift', 'diagnostics', 'logs.mirror', 'history.maxEvents', 'admin.proxyAuth'])

/** What is expected of the fields of a job. */
const JOB_PARTS = Object.freeze({
  cron: 'a cron expression of 5 fields, or 6 with seconds first, that comes some time, such as "0 3 * * *"',
  command: 'a command for the shell such as "node report.js", or a list of program and arguments',
  overlap: 'one of "skip", "queue", "replace"',
  timeoutMs: `an integer from 100 to ${MAX_TIMER_MS}`,
  timeZone: 'a time zone such as "Europe/Berlin"'
})

/** How a deploy replaces workers. `guardMs` is no part of a single rollout: it is about the time after it. */
const ROLLOUT = {
  order: choiceOption(['start-first', 'stop-first'],
    'which worker goes first in a replacement; start-first: the new one is ready before the old one drains, stop-first: the old one ends first'),
  surge: z.union([z.int().min(1).max(MAX_WORKERS), z.string().regex(/^(100|[1-9]\d?) ?%$/)]).default(1).register(ABOUT,
    { kind: 'integer', hint: 'n|n%', expected: `an integer from 1 to ${MAX_WORKERS} or a share such as "25%"`,
      description: 'how many workers a deploy replaces at the same time' }),
  minReadyMs: millisecondsOption(
    'how long a new worker must be ready without a crash before the old one drains; 0: not at all'
  ).default(0),
  canary: groupOf({
    workers: integerOption(0, MAX_WORKERS,
      'how many new workers serve beside all old ones first and are compared with them; 0: none').default(0),
    durationMs: integerOption(1000, MAX_TIMER_MS, 'how long these serve before they are judged', 'ms').default(30_000)
  }),
  limits: groupOf({
    crashes: integerOption(0, 10_000, 'how many workers of the new release may crash before the deploy fails; 0: none')
      .default(0),
    errorRate: numberOption(0, 1, 'by how much the new workers\' share of 5xx answers may exceed that of the old ones',
      'share').default(0.05),
    p99Ratio: numberOption(1, 1000,
      'how many times the old workers\' latency the new ones\' may be, after warm-up; programs in other languages are compared by CPU and memory instead',
      'times').default(3),
    slowerMs: millisecondsOption('a smaller difference of latency is ignored').default(50),
    warmupMs: millisecondsOption(
      'how long after its first answer the latency of a worker is ignored; new workers fail if they are slower in three periods of this length'
    ).default(5000),
    minRequests: integerOption(1, 1_000_000, 'with fewer answers the new workers are not judged').default(50),
    readyTimeoutMs: millisecondsOption(
      'how long a new worker may take to become ready in a rollout; 0: as ready.timeoutMs'
    ).default(0)
  }),
  progressDeadlineMs: integerOption(1000, MAX_TIMER_MS,
    'a rollout fails after this long without progress, soaks and pauses aside', 'ms').default(600_000),
  onFailure: choiceOption(['rollback', 'hold'],
    'what a failed deploy does; rollback: it rolls back, hold: it stops and waits for an operator'),
  guardMs: millisecondsOption(
    'how long a release is watched after its deploy: a crash loop, or nothing but 5xx, rolls it back, once; 0: not watched'
  ).default(300_000)
}

/** Everything that can be set, as one schema: flags, environment names, help and error messages are derived from it. */
export const SCHEMA = z.strictObject({
  name: z.string().regex(DECK_NAME).optional().register(ABOUT, { kind: 'text', hint: 'name',
    expected: 'a name of letters, digits, ".", "_" and "-", at most 60',
    description:
      'name of this deck, also for -n; default: the name of the app in the config file, else of its package, else of its folder' }),
  entry: pathOption(
    'what to start: a file, a folder, a command of an installed package (next), npm, npx, yarn or pnpm, or any other program (python3); default: "main" or script "start" of package.json'
  ).optional(),
  script: textOption('a script of package.json to start instead of an entry').optional(),
  args: listOption('arguments for the app', ' '),
  execArgv: listOption('Node options for every worker, such as --max-old-space-size=512', ' '),
  node: z.union([z.int().min(0).max(999), z.string().regex(/^(\/[^\0]+|v?\d+(\.\d+){0,2})$/)]).optional().register(
    ABOUT,
    { kind: 'text', hint: 'path|version',
      expected: 'an absolute path such as "/opt/node20/bin/node", or a version such as "20" or "20.11"',
      description:
        'the Node of the app: its path, or a version that nvm, fnm, volta, mise or asdf has installed, or that is the node of PATH; default: that of .nvmrc, .node-version or volta, if it is installed, else the one with which the command was typed',
      variable: 'APP_NODE' }
  ),
  cwd: pathOption('the folder in which the app runs; default: the working folder').optional(),
  env: z.record(z.string().regex(/^[^=\0]+$/), z.union([z.string().regex(/^[^\0]*$/), z.null()])).default({}).register(
    ABOUT,
    { kind: 'file', hint: 'object',
      expected: 'an object of texts, null for a variable that is not to be set: { LOG_LEVEL: "debug", DEBUG: null }',
      description:
        'variables for the workers, over those of the master; null unsets one. Read again at each deploy; in the config file only' }
  ),
  envFile: pathOption(
    'a file of variables for the workers, one NAME=value a line; `env` counts more. Read again at each deploy'
  ).optional(),
  secrets: z.discriminatedUnion('from', [
    z.strictObject({ from: z.literal('command'), command: programAndArguments(), format: secretsFormat(),
      timeoutMs: z.int().min(100).max(600_000).default(20_000) }),
    z.strictObject({ from: z.literal('file'), file: z.string().regex(/^[^\0]+$/), format: secretsFormat() }),
    z.strictObject({ from: z.literal('systemd-creds') })
  ]).optional().register(ABOUT, { kind: 'file', hint: 'object',
    expected:
      'one of { from: "command", command: ["sops", "decrypt", "secrets.json"], format?: "json" or "env", timeoutMs?: from 100 to 600000 }, ' +
      '{ from: "file", file: "/run/secrets.json", format?: "json" or "env" }, { from: "systemd-creds" }',
    pathIn: 'file',
    description:
      'where variables for the workers come from that are on no disk; they count more than `env`. Read again at each deploy; in the config file only' }),
  workers: z.union([z.literal('max'), z.int().min(1).max(MAX_WORKERS)]).default('max').register(ABOUT, {
    kind: 'integer',
    hint: 'n|max',
    expected: `an integer from 1 to ${MAX_WORKERS} or "max"`,
    description: 'how many workers run; max: one for each CPU that this process may use'
  }),
  standby: integerOption(0, MAX_WORKERS,
    'how many more workers load the app and wait: one replaces a worker that dies, within milliseconds; 0: none')
    .default(0),
  dispatch: choiceOption(['shared', 'sticky'],
    'who gets a connection; shared: the worker that is idle longest, sticky: one slot per client address, or with sticky.by the worker that has the session'),
  sticky: groupOf({
    by: groupOf({
      header: nameOption('header', 'mcp-session-id',
        'the header of requests and answers that names a session; with dispatch sticky, its requests reach the worker that has made it'),
      cookie: nameOption('cookie', 'connect.sid', 'the cookie that names a session, as an answer sets it'),
      query: nameOption('parameter', 'sid',
        'the parameter of the URL that names a session, as an answer tells it at its beginning; sid for Socket.IO'),
      path: z.string().regex(/^(?:\/(?::\w+|[\w.~-]+))+$/).refine((path) =>
        path.split('/').filter((part) => part === ':session').length === 1
      ).optional().register(ABOUT, { kind: 'text', hint: '/path',
        expected: 'a path with one :session, such as "/sockjs/:server/:session"',
        description:
          'where in the path of a URL a client names its session: at :session; each other :word is any part; the worker that answers it first has it' })
    }),
    idleMs: integerOption(1000, MAX_TIMER_MS,
      'how long a replaced worker is kept for a session of sticky.by without a request', 'ms').default(600_000),
    failoverMs: millisecondsOption('how long a slot may be without a ready worker before its clients go to other slots')
      .default(2000)
  }),
  rebalance: choiceOption(['on', 'off'],
    'what a worker does that gets over 10 % more requests than the others have on average; on: some of its answers say "Connection: close", and these connections come back to others; not with dispatch "sticky"'),
  compileCache: choiceOption(['off', 'on'],
    'whether Node keeps what it has compiled of the app in the data folder, so that the next workers start sooner; Node 22.1 and later. A worker writes it as it ends'),
  instanceVariable: variableName(
    'the variable that holds the number of a worker, from 0; a value that the shell, `env` or `envFile` sets stays'
  ).default('NODE_APP_INSTANCE'),
  portPerSlot: integerOption(0, 65535 - MAX_WORKERS,
    'gives each slot its own port as well: with 4000, slot 1 has 4001, slot 2 has 4002; 0: none').default(0),
  dataDir: pathOption('where the history, the admin token and the logs are kept').default('.clusterdeck'),
  admin: groupOf({ host: textOption('the address on which the admin page listens').default('127.0.0.1'),
    port: integerOption(0, 65535, 'the port of the admin page; 0: any free one').default(9777),
    allowedHosts: listOption('more host names of the admin page, such as that of a proxy', ','),
    sessionTtlMs: millisecondsOption('how long a browser stays signed in').default(DAY_MS / 2),
    basePath: z.string().regex(/^(\/[\w.~-]+)+$/).optional().register(ABOUT, { kind: 'text', hint: '/path',
      expected: 'a path such as "/deck", without a slash at its end',
      description: 'the path at which a proxy shows the admin page; default: that of admin.publicUrl' }),
    publicUrl: z.url({ protocol: /^https?$/ }).refine((url) => /^\w+:\/\/[^/?#@]+(\/[\w.~/-]*)?$/.test(url)).optional()
      .register(ABOUT, { kind: 'text', hint: 'url', expected: 'an address such as "https://ops.example.com/deck"',
        description: 'the address of the admin page behind a proxy; sign-in links use it' }),
    tls: groupOf({
      cert: pathOption(
        'a certificate with its chain, as PEM: the admin page uses https; a renewed file is loaded within a minute'
      ).optional(),
      key: pathOption('the private key of that certificate, as PEM').optional()
    }),
    plainHttp: onOrOff('allows an admin.host that others reach without TLS, although the token can be read on the way')
      .default(false),
    proxyAuth: groupOf({
      from: z.array(z.string().refine(isProxySource)).max(100).default([]).register(ABOUT, { kind: 'list', hint: 'list',
        separator: ',', expected: 'a list of addresses, ranges from /8 on, and users such as "uid:0"',
        description:
          'addresses, ranges and users of this machine from where a proxy signs people in (separated by commas)' }),
      user: nameOption('header', 'Remote-User', 'the header that names the user; default: X-Forwarded-User'),
      groups: nameOption('header', 'Remote-Groups',
        'the header of their groups; if it is that of the user, each one is a group; default: X-Forwarded-Groups'),
      roles: z.record(z.string().regex(/^[^\s,]{1,200}$/), z.enum(['viewer', 'operator', 'admin'])).default({})
        .register(ABOUT, { kind: 'pairs', hint: 'group=role', separator: ',',
          expected: 'groups and their roles such as ops=admin,dev=operator,*=viewer',
          description: 'the role of each group, *: of everybody; the highest one counts (separated by commas)' }),
      secret: z.string().regex(/^[!-~]{16,200}$/).optional().register(ABOUT, { kind: 'text', hint: 'text',
        expected: 'a text of 16 to 200 characters of ASCII without spaces',
        description: 'what the proxy sends as X-Proxy-Secret; better set as a variable, as others can see flags' }),
      signOutUrl: z.string().regex(/^(https?:\/\/|\/(?![/\\]))[!-~]{1,1000}$/).optional().register(ABOUT, {
        kind: 'text',
        hint: 'url',
        expected: 'an address, or a path such as "/oauth2/sign_out"',
        description: 'where the proxy signs people out; default: the page has no "Sign out" for them'
      })
    }) }),
  start: groupOf({
    first: choiceOption(['one', 'all'],
      'how an app starts that has never been ready; one: one worker first, so that only one creates the tables of an empty database, all: all at once')
  }),
  ready: groupOf({
    signal: choiceOption(['auto', 'listening', 'message', 'notify', 'online'],
      'when a worker is ready; auto: it listens, or has run for a while if it is no server, listening: it listens, message: it sends "ready", notify: it says READY=1 by sd_notify, online: it runs'),
    log: z.string().min(1).max(1000).refine((line) => succeeds(() => readyLineOf(line))).optional().register(ABOUT, {
      kind: 'text',
      hint: 'text|/regex/',
      expected: 'a text such as "Listening on", or a regular expression such as "/listening on port \\d+/i"',
      description:
        'a worker is ready once it writes a line with this text, or one that matches this /regular expression/, to stdout or stderr'
    }),
    timeoutMs: millisecondsOption('how long a worker may take to become ready').default(30_000),
    addresses: choiceOption(['same', 'any'],
      'where a new worker must listen to be ready; same: where the one before it did (some apps take another port if theirs is busy), any: anywhere'),
    path: urlPath('a path of the app, such as /health, that must answer before a new worker accepts connections')
      .optional(),
    status: statusesOption('which answers mean that it is ready'),
    intervalMs: integerOption(10, 60_000,
      'how long after another answer the path is requested again; doubles each time, up to 1 s', 'ms').default(100),
    probeTimeoutMs: integerOption(1, MAX_TIMER_MS, 'how long one answer may take', 'ms').default(5000),
    warmup: urlPaths(
      'paths that are requested next, in this order, before any connection; a bad answer is reported and stops nothing'
    ),
    warmupRounds: integerOption(1, 10_000, 'how many times all of ready.warmup are requested').default(1)
  }),
  drain: groupOf({
    idleGraceMs: millisecondsOption('how long a draining worker keeps idle connections open').default(5000),
    deadlineMs: millisecondsOption('how long a draining worker may take to finish its requests').default(30_000),
    stalledMs: millisecondsOption(
      'a request whose bytes have moved within this time, up or down, is not cut off at drain.deadlineMs'
    ).default(10_000),
    longLivedMs: millisecondsOption(
      'how long a replaced worker keeps its WebSockets, event streams, TCP connections and moving transfers; 0: not at all'
    ).default(14_400_000),
    maxOldWorkers: z.union([z.literal('auto'), z.int().min(0).max(10_000)]).default('auto').register(ABOUT, {
      kind: 'integer',
      hint: 'auto|n',
      expected: '"auto" or an integer from 0 to 10000',
      description:
        'how many replaced workers are kept for their long-lived connections; the oldest one ends first. auto: two for each worker that should run'
    }),
    spreadMs: millisecondsOption(
      'over how long the long-lived connections of a replaced worker are closed, so that clients do not all come back at once'
    ).default(30_000)
  }),
  stop: groupOf({
    termGraceMs: millisecondsOption(
      'how long a worker has after SIGTERM, or a program of another language after stop.signal, before it is killed'
    ).default(5000),
    message: choiceOption(['object', 'text'],
      'what a worker is sent before SIGTERM; object: { type: "shutdown", from: "master" }, text: "shutdown", as PM2 does'),
    signal: choiceOption(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'],
      'the signal that tells a program of another language to finish its requests and end; SIGQUIT for nginx and PHP-FPM')
  }),
  crash: groupOf({
    graceMs: millisecondsOption(
      'how long a worker may finish its other requests after an exception, and what clients are just sending; the rest gets a 500. 0: it ends at once'
    ).default(1000)
  }),
  orphanMs: millisecondsOption('how long a worker runs without a master if no new one takes over').default(60_000),
  keeper: groupOf({
    giveUpAfter: integerOption(0, 10_000,
      'the keeper ends after its master has died this many times in a row; 0: never').default(0),
    hungAfterMs: offOr(5000, MAX_TIMER_MS,
      'how long the master may be silent before the keeper replaces it; 0: no limit', 'ms').default(10_000)
  }),
  restart: groupOf({
    policy: choiceOption(['always', 'on-failure', 'never'],
      'which workers are started again after their end; on-failure: all but those with exit code 0, never: none, as for a job'),
    cron: z.string().refine((value) => value === '' || isCron(value)).optional().register(ABOUT, { kind: 'text',
      hint: 'expression',
      expected: 'a cron expression of 5 fields, or 6 with seconds first, such as "0 4 * * *", or ""',
      description:
        'when all workers are restarted, in the time zone of the app (TZ) or else of this machine, such as "0 4 * * *"; empty: never' }),
    minDelayMs: millisecondsOption('the first delay between the starts of a worker that keeps crashing').default(100),
    maxDelayMs: millisecondsOption('the longest such delay').default(30_000),
    resetAfterMs: millisecondsOption('how long a worker must run for the delay to start anew').default(60_000),
    intensity: groupOf({
      restarts: integerOption(1, 10_000, 'a slot with more restarts than this in the window is in a crash loop')
        .default(5),
      windowMs: millisecondsOption('the window in which restarts are counted').default(60_000)
    })
  }),
  rollout: groupOf(ROLLOUT),
  watchdog: groupOf({
    timeoutMs: offOr(2000, MAX_TIMER_MS,
      'a worker whose event loop is blocked for this long is replaced and killed, and so is a program of another language that has said WATCHDOG=1 by sd_notify and is silent for this long from then on; 0: no limit',
      'ms').default(10_000),
    stack: choiceOption(['on', 'off'],
      'whether the stack of such a worker is read first; this opens its inspector on the loopback address for a moment')
  }),
  limits: groupOf({
    memoryBytes: offOr(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER,
      'the most memory that the processes of a worker may have together before the kernel kills one of them; 0: no limit',
      'bytes').default(0),
    cpus: z.union([z.literal(0), z.number().min(0.01).max(1024)]).default(0).register(ABOUT, { kind: 'integer',
      hint: 'x', expected: '0 or a number from 0.01 to 1024',
      description: 'how many CPUs the processes of a worker may keep busy together, such as 1.5; 0: no limit' })
  }),
  recycle: groupOf({
    maxRssBytes: offOr(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER,
      'a worker is replaced after 5 s with more memory than this; 0: never', 'bytes').default(0),
    maxAgeMs: offOr(1000, MAX_TIMER_MS,
      'a worker is replaced after it has served this long, or up to a tenth less; 0: never', 'ms').default(0),
    maxRequests: offOr(1, Number.MAX_SAFE_INTEGER,
      'a worker is replaced after this many requests, or up to a tenth fewer; 0: never').default(0)
  }),
  releases: groupOf({
    mode: choiceOption(['auto', 'folder', 'live'],
      'what a deploy pins; auto: the target of the entry\'s symbolic link, or the folder as it is, folder: a copy of the app\'s folder, live: nothing'),
    shared: partsOption(
      'with releases.mode "folder": what all releases have in common, such as .env, uploads/, data.sqlite'
    ),
    exclude: partsOption(
      'with releases.mode "folder": what is not copied, and may be lost with a release, such as tmp/'
    ),
    git: z.string().min(1).max(2000).refine(isRepository).optional().register(ABOUT, { kind: 'path', hint: 'path|url',
      mayBeAddress: true,
      expected:
        'a folder, or an address such as "https://git.example.com/shop.git" or "git@git.example.com:shop.git" that begins with https, http, ssh, git or file and has no password and no query',
      description:
        'the repository of deploy --git; default: that of the app\'s folder. git fetches from an address with the keys of this user; a token in it is shown to nobody' }),
    root: pathOption('the folder below which a deploy may name a path; without it, no deploy can').optional(),
    keep: integerOption(1, 100, 'how many releases are kept; one in use always is').default(10),
    onDrift: choiceOption(['mark', 'hold'],
      'when a worker is replaced whose files have changed; mark: the new one is marked as drifted, hold: its slot waits for the old files or a deploy')
  }),
  hooks: groupOf({
    build: hookOption(
      'installs and builds the commit of deploy --git in its package folder; default: guessed from the lock file and the script "build"',
      BUILD_TIMEOUT_MS
    ),
    beforeStart: hookOption(
      'runs before the first worker of a start, such as migrations; if it fails, the start fails. Not when a dead master is replaced'
    ),
    beforeDeploy: hookOption(
      'runs before a deploy replaces anything, such as migrations; if it fails, the deploy fails'
    ),
    afterDeploy: hookOption('runs after a deploy has succeeded'),
    onCrash: hookOption('runs after a worker has crashed, at most once a minute')
  }),
  jobs: z.record(z.string().regex(DECK_NAME).refine((name) => !TAKEN_JOB_NAMES.includes(name)),
    z.strictObject({ cron: z.string().refine(isCron).optional(),
      command: z.union([z.string().regex(/^[^\0]*\S[^\0]*$/), programAndArguments()]),
      overlap: z.enum(['skip', 'queue', 'replace']).default('skip'),
      timeoutMs: z.int().min(100).max(MAX_TIMER_MS).default(3_600_000),
      timeZone: z.string().refine(isTimeZone).optional() })).default({}).register(ABOUT, { kind: 'file', hint: 'object',
      expected:
        'an object of jobs by name: { nightly: { cron: "0 3 * * *", command: "node report.js", overlap?: "skip", timeoutMs?: from 100, timeZone?: "Europe/Berlin" } }',
      parts: JOB_PARTS,
      description:
        'commands that run beside the workers, at the times of a cron expression or when somebody asks. Read again at each deploy; in the config file only' }),
  watch: onOrOff('for development: deploy when a file changes that the workers have loaded').default(false),
  diagnostics: groupOf({
    leaks: choiceOption(['on', 'off'],
      'whether a Node.js worker that is recycled by recycle.maxRssBytes is examined once it has drained, so that the history names what held its memory; at most once an hour for a release'),
    profiling: choiceOption(['off', 'on'],
      'continuous profiling: a CPU profile of 5 s of each Node.js worker each minute; those of the last hour are kept, at most 10 MB'),
    maxFiles: integerOption(1, 10_000, 'how many files of diagnostics are kept').default(20),
    maxBytes: integerOption(1024 * 1024, Number.MAX_SAFE_INTEGER,
      'how large they may be together; the newest is always kept', 'bytes').default(1024 ** 3)
  }),
  alerts: z.array(ALERT.omit({ apps: true }).refine((alert) => alertFlaw(alert) === null)).max(20).default([]).register(
    ABOUT,
    { kind: 'file', hint: 'list',
      expected:
        'a list of alerts: { kind: "slack", "discord", "teams" or "webhook", url: "https://…" without user and password, and of a webhook secret?: "at least 16 characters", body?: { text: "{{title}}" }, headers?: { Authorization: "Bearer …" } } or { kind: "sentry", dsn: "https://key@host/project" } or { kind: "mail", host, port?, user?, password?, from, to: ["ops@example.com"] }, each with name? and events?: ["worker.*", "worker.exited:hung", …]',
      description: 'alerts that the dashboard shows and cannot change; in the config file only' }
  ),
  heartbeat: groupOf({
    url: HTTP_URL.optional().register(ABOUT, { kind: 'text', hint: 'url',
      expected: 'an http or https address without user and password',
      description:
        'an address that is requested again and again while the app is served: the service behind it calls somebody when nothing comes; better set as a variable, as others can see flags' }),
    everyMs: integerOption(10_000, DAY_MS, 'how often heartbeat.url is requested', 'ms').default(60_000)
  }),
  fleet: groupOf({
    servers: z.array(z.string().refine(isNatsServer)).max(20).default([]).register(ABOUT, { kind: 'list', hint: 'list',
      separator: ',', words: ['fleet'],
      expected: 'a list of addresses such as "nats://10.0.0.5:4222", without user and password',
      description:
        'NATS servers with JetStream, by which hosts on several machines see each other and deploy in turn (separated by commas); none: this host is alone' }),
    name: z.string().regex(/^[A-Za-z\d][\w-]{0,59}$/).default('default').register(ABOUT, { kind: 'text', hint: 'name',
      expected: 'a name of letters, digits, "_" and "-", at most 60',
      description: 'name of the fleet: hosts with the same one belong together' }),
    member: z.string().regex(MEMBER_NAME).optional().register(ABOUT, { kind: 'text', hint: 'name',
      expected: 'a name of letters, digits, "_" and "-", at most 100',
      description:
        'name of this host in the fleet, where it must be unique; default: the name of the machine, for a deck in the foreground with that of the app' }),
    labels: z.record(z.string().regex(LABEL_NAME), z.string().max(200)).default({}).register(ABOUT, { kind: 'pairs',
      hint: 'label=value', separator: ',', expected: 'labels and their values such as zone=a,disk=ssd',
      description: 'labels by which members are selected and ordered (separated by commas)' }),
    accept: choiceOption(['read', 'operate', 'nothing'],
      'what other members may do to this host and its apps; read: what viewers can, operate: what operators can, such as restart and deploy, nothing: nothing'),
    token: textOption('the token of the NATS servers; better set as a variable, as others can see flags').optional(),
    credentials: pathOption('a file of NATS credentials (.creds)').optional(),
    tls: groupOf({ ca: pathOption('the CA certificate of the NATS servers, as PEM').optional(),
      cert: pathOption('a certificate for this host, as PEM').optional(),
      key: pathOption('its private key, as PEM').optional() })
  }),
  logs: groupOf({
    maxBytes: integerOption(64 * 1024, 2 ** 40,
      'how large a log file of a slot gets before its older lines move to another one', 'bytes').default(
        10 * 1024 * 1024
      ),
    maxFiles: integerOption(1, 1000, 'how many such files are kept for each slot and stream').default(5),
    mirror: choiceOption(['auto', 'on', 'off'],
      'whether the master prints the output of the workers; auto: if its own goes to a terminal')
  }),
  telemetry: groupOf({
    appMetrics: choiceOption(['on', 'off'],
      'whether /metrics also has what the app counts by prom-client, summed over all workers'),
    routes: choiceOption(['on', 'off'],
      'whether requests are counted by route, such as GET /users/:id, with their latencies and errors'),
    otlp: choiceOption(['on', 'off'],
      'whether metrics and events go to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names, if that is set'),
    journald: choiceOption(['off', 'on'], 'whether events go to journald, with fields such as CLUSTERDECK_EVENT'),
    syslog: z.string().refine((value) =>
      value === 'local' || (/^udp:\/\/([\w.-]+|\[[\da-f:]+\])(:\d{1,5})?$/i.test(value) && URL.canParse(value))
    ).optional().register(ABOUT, { kind: 'text', hint: 'local|udp://host:port',
      expected: '"local" or an address such as "udp://10.0.0.5:514"',
      description: 'a syslog that gets the events: that of this machine, or another one by UDP (RFC 5424)' }),
    workerOutput: choiceOption(['off', 'on'],
      'whether the collector, journald and syslog that get the events also get what the workers write, each line as a record')
  }),
  history: groupOf({
    maxAgeMs: integerOption(1000, 3650 * DAY_MS, 'how long events are kept', 'ms').default(30 * DAY_MS),
    maxEvents: integerOption(1000, 100_000_000,
      'how many events are kept; messages of the app have another tenth of that').default(1_000_000)
  })
})

/** One thing that can be set. */
type Name = {
  /** its path in a config file, `ready.timeoutMs` */
  name: string,
  path: string[],
  /** `readyTimeoutMs`, as in the flags object */
  key: string,
  /** `--ready-timeout-ms` */
  flag: string,
  /** `CLUSTERDECK_READY_TIMEOUT_MS` */
  env: string,
  unit: Unit | null,
  /** the default */
  fallback?: unknown,
  takesEffect: TakesEffect,
  /** whether its value may hold a secret */
  isSecret: boolean,
  /** whether help and manual list it last */
  isRare: boolean
}
export type Option = About & Name
/**
 * When a change of an option counts. `now`: at once, as it can be set while the cluster runs; `deploy`: with the next
 * deploy, which reads it again; `start`: with the next start of the master.
 */
type TakesEffect = 'now' | 'deploy' | 'start'

export const OPTIONS: readonly Option[] = Object.freeze(describeOptions(SCHEMA, []))

function describeOptions (group: z.ZodType, path: string[]): Option[] {
  return Object.entries(shapeOf(group) ?? {}).flatMap(([key, field]) => {
    const here = [...path, key]
    const about = aboutOf(field)
    return about ? [toOption(here, field, about)] : describeOptions(field, here)
  })
}

function toOption (path: string[], field: z.ZodType, about: About): Option {
  const name = path.join('.')
  const words = about.words ?? path.flatMap((part) => part.split(/(?=[A-Z])/)).map((word) => word.toLowerCase())
  const isListed = (places: readonly string[]) => places.some((place) => name === place || name.startsWith(`${place}.`))
  const unit = UNITS.find((each) => each === about.hint) ?? null
  const expected = unit === null
    ? about.expected
    : `${about.expected}, or one with its unit such as "${EXAMPLES[unit]}"`
  return { ...about, expected, unit, name, path,
    key: words[0] + words.slice(1).map((word) => word[0].toUpperCase() + word.slice(1)).join(''),
    flag: `--${words.join('-')}`, env: `CLUSTERDECK_${about.variable ?? words.join('_').toUpperCase()}`,
    fallback: field.safeParse(undefined).data,
    takesEffect: isListed(AT_DEPLOY) ? 'deploy' : isListed(LIVE) ? 'now' : 'start', isSecret: SECRET.includes(name),
    isRare: isListed(RARE) }
}

/** Defaults wrap the schema that was described. Returns undefined: it is a group. */
function aboutOf (field: z.ZodType): About | undefined {
  const inner = innerOf(field)
  return ABOUT.get(field) ?? (inner && aboutOf(inner))
}

/** Undefined: it is no object */
function shapeOf (field: z.ZodType): Record<string, z.ZodType> | undefined {
  const inner = innerOf(field)
  if (inner) return shapeOf(inner)
  return field instanceof z.ZodObject ? field.shape : undefined
}

/** @returns what its default wraps */
export function innerOf ({ def }: z.ZodType): z.ZodType | undefined {
  return 'innerType' in def && def.innerType instanceof z.ZodType ? def.innerType : undefined
}

function groupOf<T extends ZodRawShape> (shape: T) {
  return z.strictObject(shape).prefault({} as z.input<z.ZodObject<T>>)
}

/** An address has no user and password: these are options of their own. */
function isNatsServer (address: string) {
  return /^((nats|tls):\/\/)?[^\s,/@?#]{1,500}$/.test(address) &&
    URL.canParse(address.replace(/^(\w+:\/\/)?/, 'nats://'))
}

/** A command (`ext::`), an option of git or a password is refused. */
function isRepository (text: string) {
  if (/^-|[\u0000-\u001f\u007f]/.test(text) || /^[^/]*::/.test(text)) return false
  if (!isAddress(text)) return true
  return /^\w+:\/\//.test(text)
    ? /^(https?|ssh|git|file):\/\/(?![^/]*:[^/]*@)(?<!^git:\/\/(?=[^/]*@))[^?#]*$/.test(text)
    : /^[\w.~-]+(@[\w.-]+)?:(?![^/]*@)[^-]/.test(text)
}

/** `timeoutMs`: default */
function hookOption (description: string, timeoutMs: number = 300_000) {
  return z.strictObject({ command: programAndArguments(),
    timeoutMs: z.int().min(100).max(MAX_TIMER_MS).default(timeoutMs) }).optional().register(ABOUT, { kind: 'file',
      hint: 'object', expected: 'an object { command: ["npm", "run", "migrate"], timeoutMs?: from 100 }',
      description: `${description}. Read again at each deploy; in the config file only` })
}

/** What is run without a shell. */
function programAndArguments () {
  return z.array(z.string().regex(/^[^\0]*$/)).min(1).refine(([program]) => program !== '')
}

function secretsFormat () {
  return z.enum(['json', 'env']).default('json')
}

function integerOption (min: number, max: number, description: string, hint: string = 'n') {
  return z.int().min(min).max(max).register(ABOUT, { kind: 'integer', hint,
    expected: `an integer from ${min} to ${max}`, description })
}

function offOr (min: number, max: number, description: string, hint: string = 'n') {
  const expected = `0 or an integer from ${min} to ${max}`
  return z.union([z.int().min(0).max(0), z.int().min(min).max(max)]).register(ABOUT, { kind: 'integer', hint, expected,
    description })
}

function numberOption (min: number, max: number, description: string, hint: 'share' | 'times') {
  return z.number().min(min).max(max).register(ABOUT, { kind: 'integer', hint,
    expected: `a number from ${min} to ${max}`, description })
}

function millisecondsOption (description: string) {
  return integerOption(0, MAX_TIMER_MS, description, 'ms')
}

/** `values`: the first is the default */
function choiceOption<const T extends string> (values: readonly [T, ...T[]], description: string) {
  const expected = `one of ${values.map((value) => `"${value}"`).join(', ')}`
  return z.enum(values).default(values[0]).register(ABOUT, { kind: 'choice', hint: values.join('|'), expected,
    description })
}

function onOrOff (description: string) {
  return z.boolean().register(ABOUT, { kind: 'switch', hint: 'true|false', expected: 'true or false', description })
}

function textOption (description: string) {
  return z.string().min(1).register(ABOUT, { kind: 'text', hint: 'text', expected: 'a text that is not empty',
    description })
}

function nameOption (what: string, example: string, description: string) {
  return z.string().regex(/^[!#$%&'*+.^`|~\w-]{1,100}$/).optional().register(ABOUT, { kind: 'text', hint: 'name',
    expected: `the name of a ${what} such as "${example}"`, description })
}

function variableName (description: string) {
  const expected = 'the name of a variable that does not begin with CLUSTERDECK_'
  return z.string().regex(/^(?!CLUSTERDECK_)[A-Za-z_][A-Za-z0-9_]*$/).register(ABOUT, { kind: 'text', hint: 'name',
    expected, description })
}

function urlPath (description: string) {
  return z.string().regex(URL_PATH).register(ABOUT, { kind: 'text', hint: '/path', expected: 'a path such as "/health"',
    description })
}

function urlPaths (description: string) {
  return z.array(z.string().regex(URL_PATH)).max(1000).default([]).register(ABOUT, { kind: 'list', hint: 'list',
    separator: ' ', expected: 'a list of paths such as "/health"',
    description: `${description} (separated by spaces)` })
}

/** A config file may also give one text, or numbers. */
function statusesOption (description: string) {
  const range = z.string().regex(/^[1-5]\d\d(-[1-5]\d\d)?$/).refine((value) => {
    const [from, to = from] = value.split('-')
    return from <= to
  })
  const status = z.union([z.string(), z.number()])
  return z.union([status, z.array(status)]).transform((value) =>
    typeof value === 'string' ? value.split(',').map((part) => part.trim()) : [value].flat().map(String)
  ).pipe(z.array(range).min(1).max(100)).default(['200-399']).register(ABOUT, { kind: 'list', hint: 'list',
    separator: ',', expected: 'HTTP statuses such as 200, "200-399" or a list of them',
    description: `${description} (separated by commas)` })
}

function pathOption (description: string) {
  return z.string().min(1).register(ABOUT, { kind: 'path', hint: 'path', expected: 'a path', description })
}

function partsOption (description: string) {
  const part = z.string().min(1).max(1000).refine((name) =>
    !/^[/]|\0|\\/.test(name) &&
    name.split('/').every((step, index, all) =>
      step !== '.' && step !== '..' && (step !== '' || index === all.length - 1)
    )
  )
  return z.array(part).max(1000).default([]).register(ABOUT, { kind: 'list', hint: 'list', separator: ' ',
    expected: 'a list of paths from the app\'s folder, such as "uploads/"',
    description: `${description} (separated by spaces)` })
}

function listOption (description: string, separator: string) {
  const named = separator === ',' ? 'commas' : 'spaces'
  return z.array(z.string()).default([]).register(ABOUT, { kind: 'list', hint: 'list', separator,
    expected: 'a list of texts', description: `${description} (separated by ${named})` })
}

/** all of it is optional and has no default */
type Wish<T> = { [K in keyof T]?: T[K] extends object ? Partial<T[K]> : T[K] }

const { guardMs, ...ROLLOUT_WISH } = ROLLOUT

/** What a caller may say of one rollout. */
export const STRATEGY = asWish(z.strictObject(ROLLOUT_WISH)) as z.ZodType<
  Wish<Omit<z.infer<typeof SCHEMA>['rollout'], 'guardMs'>>
>

/** What may change while the cluster runs, by the names of the options. */
export const CHANGE = z.strictObject(
  Object.fromEntries(OPTIONS.filter(({ takesEffect }) =>
    takesEffect === 'now'
  ).map(({ name, path }) => [name, asWish(fieldAt(path))]))
)

/** `path`: of an option */
export function fieldAt (path: string[]): z.ZodType {
  return path.reduce((group, key) => shapeOf(group)?.[key] ?? group, SCHEMA as z.ZodType)
}

/** @returns every field optional, without its default, described by what it expects */
function asWish (field: z.ZodType): z.ZodType {
  const shape = shapeOf(field)
  const about = aboutOf(field)
  if (about || !shape)
    return bareOf(field).optional().meta({ description: about?.description, expected: about?.expected })
  return z.strictObject(Object.fromEntries(Object.entries(shape).map(([key, inner]) => [key, asWish(inner)])))
    .optional().describe('an object')
}

/** @returns without its default */
function bareOf (field: z.ZodType): z.ZodType {
  const inner = innerOf(field)
  return inner ? bareOf(inner) : field
}
