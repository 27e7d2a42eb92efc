import { MAX_WORKERS } from '../config/max-workers.ts'
import { Expression } from './literal.ts'
import { bytesOf, integerOf, isOn, millisecondsOf, wordsOf } from './values.ts'
import type { Program } from './program.ts'

/** The outcome of each key that PM2 knows (lib/API/schema.json of PM2 7, and others that its code reads). */
export type Fate = 'carried over' | 'replaced' | 'left out'
/** `set`: values by the name of the option; null: the default is right. */
type Outcome = { set: Record<string, unknown>, note?: string } | { left: string } | null
/** the app around a key */
export type Scene = {
  /** by PM2's own names of the keys */
  app: Record<string, unknown>,
  program: Program,
  /** for the option of that name */
  env: Record<string, unknown>,
  /** of the file, for the config file */
  path: (file: string) => string,
  envName: string | undefined
}
type Row = {
  /** its other names, but for that in camel case */
  also?: string[],
  /** of a value that can be read */
  fate: Fate,
  /** for the manual: options, or the nearest of them */
  becomes: string,
  /** a sentence for the manual, and for the config file if the key is left out */
  about: string,
  /** values that change nothing here */
  usual?: unknown[],
  /** without it, it is left out */
  read?: (value: unknown, scene: Scene) => Outcome
}

const MAX_PORT_PER_SLOT = 65535 - MAX_WORKERS
const LEAST_RSS_BYTES = 16 * 1024 ** 2
/** PM2's own, in constants.js and lib/God.js. */
const PM2_LONGEST_DELAY_MS = 15_000
const PM2_BACKOFF_RESET_MS = 30_000
const READY_TIMEOUT_MS = 30_000
const CRON = /^\s*(?:[\w*,/?#+.-]+\s+){4,5}[\w*,/?#+.-]+\s*$/
const CRON_NAMES: Readonly<Record<string, string>> = { '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0', '@daily': '0 0 * * *', '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *' }
const LOG_FOLDER =
  'Each worker writes to its own file in the data folder, rotated by size; `clusterdeck logs` prints them together'
const ONE_PORT = 'PM2 runs separate processes in this mode; here all workers share one port.'

/** `key`: of KEYS. Returns all names that PM2 has for it. */
export function namesOfKey (key: string): string[] {
  const camelCase = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return [...new Set([key, camelCase, ...KEYS[key].also ?? []])]
}

export const KEYS: Readonly<Record<string, Row>> = {
  script: { also: ['exec', 'cmd', 'command'], fate: 'carried over', becomes: '`entry`',
    about:
      'A file, an installed program or `npm`, `npx`, `yarn`, `pnpm`. A line such as `node app.js --port 80` is split. A line for a shell is run by `/bin/sh`.',
    read: (_value, { program, path }) => ({
      set: { entry: program.isCommand ? program.entry : plainEntry(path(program.entry)),
        ...(program.args.length > 0 && { args: program.args }),
        ...(program.execArgv.length > 0 && { execArgv: program.execArgv }) }
    }) },
  args: { fate: 'carried over', becomes: '`args`', about: 'A text is cut at blanks, but not within quotes, as in PM2.',
    read: (_value, { program }) => program.args.length > 0 ? { set: { args: program.args } } : null },
  node_args: { also: ['interpreterArgs', 'interpreter_args'], fate: 'carried over', becomes: '`execArgv`',
    about: 'Options of node itself.', read (_value, { program: { execArgv, args } }) {
    if (execArgv.length > 0) return { set: { execArgv } }
    return args.length > 0 ? { set: { args } } : null
  } },
  exec_interpreter: { also: ['interpreter'], fate: 'replaced', becomes: '`node`, or `entry`',
    about:
      'The path of a Node, or a version such as `node@20`, becomes `node`. `python3`, `bun`, `bash` and the like, or `tsx` and `ts-node`, become the entry. The options of the interpreter and the script become its first arguments.',
    usual: ['node', 'none', 'nodejs'], read (_value, { program: { notes, node } }) {
    const note = notes.find((each) => each.startsWith('exec_interpreter:'))
    return { set: node === undefined ? {} : { node }, note: note?.replace(/^exec_interpreter: /, '') }
  } },
  cwd: { fate: 'carried over', becomes: '`cwd`', about: 'Relative to the config file.',
    read: whereFile('cwd', 'a folder') },
  env: { fate: 'carried over', becomes: '`env`', about: 'Numbers become texts, and objects JSON, as in PM2.',
    read: (value, { env }) => typeof value === 'object' ? withEnv(env) : notRead('an object') },
  'env_<name>': { fate: 'carried over', becomes: '`env`, with `--env <name>`',
    about: 'It overrides `deploy.<name>.env`, which overrides `env`. Without `--env` it is left out.' },
  env_file: { fate: 'carried over', becomes: '`envFile`', about: 'PM2 7 itself does not read it.',
    read: whereFile('envFile', 'one file') },
  filter_env: { fate: 'carried over', becomes: '`env`, with `null`',
    about: '`true` is left out: `env -i PATH="$PATH" clusterdeck start` begins with an empty environment.',
    usual: [false, ''], read (value, { env }) {
    if (value !== true && Object.keys(env).length > 0) return withEnv(env)
    return { left: 'the app gets no variable of the shell. Nearest: env -i PATH="$PATH" clusterdeck start' }
  } },
  port: { fate: 'carried over', becomes: '`env.PORT`',
    about: 'It overrides the `PORT` of `env`; that of `env_<name>` overrides it, as in PM2.', usual: [0],
    read: (_value, { env }) => withEnv(env) },
  instances: { fate: 'carried over', becomes: '`workers`',
    about: '`0` and `max` mean one for each CPU. `-1` means one fewer, counted where the app starts. Without it: 1.',
    read: workersOf },
  exec_mode: { fate: 'replaced', becomes: 'shared sockets',
    about:
      'Workers always share their port, as in cluster mode. In fork mode each instance needs its own port: see `increment_var`.',
    read (value, { app }) {
      const isSeparate = isFork(value) && (integerOf(app.instances) ?? 1) !== 1
      return { set: {}, note: isSeparate ? ONE_PORT : 'Workers always share their port.' }
    } },
  increment_var: { fate: 'replaced', becomes: '`portPerSlot`',
    about:
      'For `PORT`: all workers share the port, and worker N also has port + N. For another variable, count from `NODE_APP_INSTANCE` (0, 1, 2, …).',
    read: portPerSlotOf },
  instance_var: { fate: 'carried over', becomes: '`instanceVariable`',
    about: 'It counts the workers of one app from 0.', usual: ['NODE_APP_INSTANCE'],
    read: (value) => ({ set: { instanceVariable: value } }) },
  name: { fate: 'carried over', becomes: 'the name below `apps`; of one app alone, `name`',
    about: 'Letters, digits and `. _ -` stay. `-n <name>` addresses the deck in every command.',
    read: () => ({ set: {}, note: 'the name below apps; of one app alone, the option name' }) },
  append_env_to_name: { fate: 'carried over', becomes: 'the name below `apps`', about: 'With `--env`.', usual: [false],
    read: (_value, { envName }) => envName === undefined ? null : { set: {}, note: 'the name below apps' } },
  max_memory_restart: { fate: 'carried over', becomes: '`recycle.maxRssBytes`',
    about:
      'The next worker is ready before the old one drains. PM2 checks every 30 s, clusterdeck acts after 5 s. At least 16 MiB.',
    read (value) {
      const bytes = bytesOf(value)
      if (bytes === null) return notRead('a size such as "300M"')
      if (bytes >= LEAST_RSS_BYTES) return { set: { 'recycle.maxRssBytes': bytes }, note: asGiven(value, bytes) }
      return {
        left: `${shownValue(value)} is less than a Node process takes. Nearest: recycle.maxRssBytes, from 16 MiB`
      }
    } },
  wait_ready: { fate: 'carried over', becomes: '`ready.signal: "message"`',
    about:
      '`process.send(\'ready\')`. A worker that does not send it within `ready.timeoutMs` has failed; in PM2 it counts as ready.',
    usual: [false], read: whereOn({ 'ready.signal': 'message' }) },
  listen_timeout: { fate: 'replaced', becomes: '`ready.timeoutMs`',
    about:
      'After this time PM2 goes on anyway; here the worker has failed. So only a time of more than 30 s, the default, is carried over.',
    read: whereTime((ms, value) =>
      ms > READY_TIMEOUT_MS
        ? { set: { 'ready.timeoutMs': ms }, note: asGiven(value, ms) }
        : {
          left: 'after this time PM2 goes on anyway; here the worker has failed, so 30 s stay. Nearest: ready.timeoutMs'
        }
    ) },
  kill_timeout: { fate: 'carried over', becomes: '`stop.termGraceMs`',
    about:
      'The worker drains first (`drain.deadlineMs`), then gets SIGTERM (PM2 sends SIGINT), and SIGKILL after this time.',
    read: whereTime((ms) => ({ set: { 'stop.termGraceMs': ms },
      note: 'The worker drains first, then gets SIGTERM (PM2 sends SIGINT), and SIGKILL after this time.' })
    ) },
  kill_retry_time: leftOut('The end of a process is seen at once', { usual: [100] }),
  shutdown_with_message: { fate: 'carried over', becomes: '`stop.message: "text"`',
    about: 'The worker gets the message `\'shutdown\'` after it has drained, and SIGTERM too.', usual: [false],
    read: whereOn({ 'stop.message': 'text' }) },
  treekill: leftOut(
    'PM2 also ends the children of a process; here a worker must end its own. systemd ends all of a unit',
    { usual: [false] }
  ),
  restart_delay: { fate: 'replaced', becomes: '`restart.minDelayMs`, `restart.maxDelayMs`',
    about:
      'The first replacement starts at once, each further one this long after the start of the one before, or at once where that was longer ago.',
    usual: [0, '0'], read: whereTime((ms, _value, { app }) =>
      isBackoff(app)
        ? { left: 'exp_backoff_restart_delay counts, as in PM2' }
        : { set: { 'restart.minDelayMs': ms, 'restart.maxDelayMs': ms },
          note: 'The first replacement starts at once, each further one after this delay.' }
    ) },
  exp_backoff_restart_delay: { fate: 'carried over',
    becomes: '`restart.minDelayMs`, `restart.maxDelayMs`, `restart.resetAfterMs`',
    about: 'The delay doubles (PM2 adds half of it), up to 15 s as in PM2. A worker that runs for 30 s resets it.',
    usual: [0, '0'],
    read: whereTime((ms) => ({
      set: { 'restart.minDelayMs': ms, 'restart.maxDelayMs': Math.max(ms, PM2_LONGEST_DELAY_MS),
        'restart.resetAfterMs': PM2_BACKOFF_RESET_MS },
      note: 'It doubles each time, up to 15 s; a worker that runs for 30 s resets it.'
    })) },
  min_uptime: { fate: 'replaced', becomes: '`restart.resetAfterMs`',
    about: 'A worker that runs longer resets the delay. With `exp_backoff_restart_delay` the 30 s of PM2 count.',
    read: whereTime((ms, value, { app }) =>
      isBackoff(app)
        ? { left: 'the 30 s of exp_backoff_restart_delay count. Nearest: restart.resetAfterMs' }
        : { set: { 'restart.resetAfterMs': ms }, note: asGiven(value, ms) }
    ) },
  max_restarts: { fate: 'replaced', becomes: '`restart.policy: "never"` for 0',
    about:
      'A slot is never given up: it waits longer each time, and is shown as in a crash loop. Nearest: `restart.intensity.restarts`.',
    read (value) {
      const count = integerOf(value)
      if (count === null) return notRead('a number')
      if (count === 0) return { set: { 'restart.policy': 'never' } }
      return {
        left:
          'a slot is never given up: it waits longer each time, and is shown as in a crash loop. Nearest: restart.intensity.restarts'
      }
    } },
  autorestart: { fate: 'carried over', becomes: '`restart.policy: "never"`', about: 'For `false`.', usual: [true],
    read: whereOff({ 'restart.policy': 'never' }) },
  stop_exit_codes: { fate: 'replaced', becomes: '`restart.policy: "on-failure"`',
    about: 'For 0. Other codes count as failures.', read (value, { app }) {
    const codes = [value].flat(1).map(integerOf)
    if (app.autorestart !== undefined && !isOn(app.autorestart)) return { left: 'nothing is restarted in any case' }
    if (!codes.includes(0)) return { left: 'any code but 0 is a failure. Nearest: restart.policy, with 0 as the code' }
    const isMore = codes.some((code) => code !== 0)
    return { set: { 'restart.policy': 'on-failure' },
      ...(isMore && { note: 'Only 0 of these codes: any other one is a failure.' }) }
  } },
  autostart: { fate: 'carried over', becomes: '`autostart: false` below `apps`',
    about:
      'For `false`: `clusterdeck up` puts the app on the list, and starts it only if you name it. So it is for one that is stopped in a running PM2.',
    usual: [true], read: whereOff({ autostart: false }) },
  cron_restart: { also: ['cron'], fate: 'carried over',
    becomes: '`restart.cron`; with `autostart: false` a [job](jobs.md)',
    about:
      'Worker by worker; PM2 restarts all at once. What a running PM2 does not start again (`autorestart: false`) is a job, too, between two runs and in one.',
    usual: [0, '0', ''], read (value, { app }) {
    const cron = typeof value === 'string' ? CRON_NAMES[value.trim()] ?? value : ''
    const note = isOn(app.autorestart ?? true)
      ? undefined
      : 'It also runs at each start, as in PM2. With autostart: false it is imported as a job, which runs at its times alone.'
    return CRON.test(cron)
      ? { set: { 'restart.cron': cron.trim() }, note }
      : notRead('a pattern of five fields, or of six with seconds first')
  } },
  watch: { fate: 'replaced', becomes: '`watch`',
    about: 'For development: deploys when a file changes that the workers have loaded. PM2 restarts on any file.',
    usual: [false],
    read: whereOn({ watch: true },
      'For development: deploys when a file changes that the workers have loaded. Remove it in production.') },
  ignore_watch: leftOut(
    'Only files that the workers have loaded are watched, none of node_modules. Logs and data start no deploy'
  ),
  watch_delay: leftOut('Changes at the same time are one rollout'),
  watch_options: leftOut('Only files that the workers have loaded are watched'),
  source_map_support: { fate: 'carried over', becomes: '`execArgv: ["--enable-source-maps"]`',
    about: 'They are on by default in PM2, in clusterdeck only with this option of Node.', usual: [false],
    read: (value, { app, program: { execArgv } }) =>
      isOn(value) && !isOn(app.disable_source_map_support)
        ? {
          set: {
            execArgv: execArgv.includes('--enable-source-maps') ? execArgv : [...execArgv, '--enable-source-maps']
          }
        }
        : null },
  disable_source_map_support: { fate: 'carried over', becomes: 'nothing to say',
    about: 'Source maps are off unless `execArgv` has `--enable-source-maps`.', usual: [false], read: () => null },
  out_file: logKey(LOG_FOLDER, ['out', 'output', 'out_log']),
  error_file: logKey(LOG_FOLDER, ['error', 'err', 'err_file', 'err_log']),
  log_file: logKey(`${LOG_FOLDER}, both streams in the order of their arrival`, ['log']),
  merge_logs: logKey('`clusterdeck logs` prints all workers together', ['combine_logs']),
  log_date_format: logKey('Each line is kept with its time. Nearest: `clusterdeck logs --timestamps`'),
  time: logKey('Each line is kept with its time. Nearest: `clusterdeck logs --timestamps`'),
  log_type: logKey('Nearest: `clusterdeck logs --json`'),
  disable_logs: logKey('Logs are bounded. Nearest: `logs.maxBytes` and `logs.maxFiles`'),
  pid_file: leftOut('`clusterdeck status --json` has the pid too', { also: ['pid'],
    becomes: '`master.json` in the data folder' }),
  uid: leftOut('All of a deck runs as the user who starts it. Nearest: `clusterdeck systemd --user <name>`', {
    also: ['user'],
    becomes: '`clusterdeck systemd --user`'
  }),
  gid: leftOut('All of a deck runs as the user who starts it. Nearest: Group= in the unit of clusterdeck systemd', {
    becomes: '`Group=` of the unit'
  }),
  username: leftOut('PM2 writes here who has started it'),
  namespace: leftOut('Nearest: a config file for each group of apps', { becomes: 'the name below `apps`',
    usual: ['default', ''] }),
  name_prefix: leftOut('Nearest: another name below apps', { becomes: 'the name below `apps`' }),
  force: leftOut('A data folder has one master; a second deck of the same app needs another one (dataDir)', {
    usual: [false]
  }),
  execute_command: leftOut('It only selects fork mode', { usual: [false] }),
  vizion: leftOut('Each release has its commit anyway. Nearest: clusterdeck releases', {
    becomes: '`clusterdeck releases`',
    usual: [true]
  }),
  versioning: leftOut('Each release has its commit anyway. Nearest: clusterdeck releases', {
    becomes: '`clusterdeck releases`'
  }),
  post_update: leftOut('They belong to pm2 pull. Nearest: hooks.beforeDeploy, `{ command: ["npm", "ci"] }`', {
    becomes: '`hooks.beforeDeploy`'
  }),
  install_url: leftOut('It belongs to the modules of PM2'),
  ...rowsOf(['trace', 'disable_trace', 'deep_monitoring', 'event_loop_inspector', 'v8', 'pmx', 'automation', 'io'],
    leftOut('It belongs to the monitoring service of PM2. Nearest: the dashboard, and /metrics for Prometheus', {
      becomes: 'the dashboard, `/metrics`',
      usual: [false]
    })),
  windowsHide: leftOut('It is for Windows alone'),
  write: leftOut('It tells a PM2 command to write a file')
}

/** Keys beside `apps`. */
export const FILE_KEYS: Readonly<Record<string, { fate?: Fate, becomes: string, about: string }>> = {
  deploy: { fate: 'replaced', becomes: '`releases.git`, `hooks.build`',
    about:
      'For `clusterdeck deploy --git` on the machine itself: `repo`, and `post-deploy` without its `pm2 reload`; a comment names its `ref`. Of several environments, that of `--env`. User, host, path and the other hooks are left out, and so is a `post-deploy` that tells PM2 something else' },
  static: { becomes: '`http-server` from npm',
    about:
      'PM2\'s own server of static files. Nearest: npm install http-server, and an app `{ entry: "http-server", args: ["public", "-p", "8080"] }`' }
}

function leftOut (about: string, more: Partial<Row> = {}): Row {
  return { fate: 'left out', becomes: '', about, ...more }
}

function logKey (about: string, also?: string[]): Row {
  return leftOut(about, { also, becomes: '`clusterdeck logs`', usual: [false] })
}

function rowsOf (keys: string[], row: Row): Record<string, Row> {
  return Object.fromEntries(keys.map((key) => [key, row]))
}

function whereOn (set: Record<string, unknown>, note?: string): Row['read'] {
  return (value) => isOn(value) ? { set, note } : null
}

function whereOff (set: Record<string, unknown>): Row['read'] {
  return (value) => isOn(value) ? null : { set }
}

function whereTime (outcomeOf: (ms: number, value: unknown, scene: Scene) => Outcome): Row['read'] {
  return (value, scene) => {
    const ms = millisecondsOf(value)
    return ms === null ? notRead('a time') : outcomeOf(ms, value, scene)
  }
}

function whereFile (option: string, expected: string): Row['read'] {
  return (value, { path }) => isText(value) ? { set: { [option]: path(value) } } : notRead(expected)
}

function workersOf (value: unknown, { app }: Scene): Outcome {
  const wanted = value === 'max' ? 0 : integerOf(value) ?? (typeof value === 'string' ? 0 : null)
  if (wanted === null) return notRead('a number or "max"')
  const shown = shownValue(value)
  if (wanted === 0) return { set: { workers: 'max' }, note: `${shown}: one for each CPU that the app may use.` }
  if (wanted > MAX_WORKERS)
    return { set: { workers: MAX_WORKERS }, note: `${shown} is more than ${MAX_WORKERS}, which is the most.` }
  if (wanted < 0) {
    const workers = new Expression(`Math.max(1, os.availableParallelism() - ${-wanted})`, 'os')
    return { set: { workers }, note: `${shown}: ${-wanted} fewer than the CPUs of the machine on which the app runs.` }
  }
  const isOne = wanted === 1 && isFork(app.exec_mode ?? 'fork')
  return { set: { workers: wanted },
    ...(isOne && { note: 'One process. With two or more, the app survives the end of one.' }) }
}

function portPerSlotOf (value: unknown, { env }: Scene): Outcome {
  const base = isText(value) && Object.hasOwn(env, value) ? integerOf(env[value]) : null
  const shown = shownValue(value)
  if (!isText(value) || !/port$/i.test(value)) {
    return {
      left: `${shown} stays the same in all workers. Nearest: NODE_APP_INSTANCE, which is 0, 1, 2, … in the workers`
    }
  }
  if (base === null || base < 1 || base > MAX_PORT_PER_SLOT) {
    return { left: `${shown} is not in env as a port from 1 to ${MAX_PORT_PER_SLOT}. Nearest: portPerSlot` }
  }
  return { set: { portPerSlot: base },
    note: `All workers share port ${base} of ${shown}; worker 1 also has ${base + 1}, worker 2 ${
      base + 2
    }, and so on.` }
}

function withEnv (env: Record<string, unknown>): Outcome {
  return Object.keys(env).length > 0 ? { set: { env } } : null
}

function isFork (mode: unknown) {
  return typeof mode === 'string' && mode.startsWith('fork')
}

function isBackoff (app: Record<string, unknown>) {
  return Boolean(app.exp_backoff_restart_delay) && millisecondsOf(app.exp_backoff_restart_delay) !== null
}

/** A name without folder could be that of a command. */
function plainEntry (file: string) {
  return file.includes('/') || /\.\w+$/.test(file) ? file : `./${file}`
}

function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0')
}

function notRead (expected: string): Outcome {
  return { left: `it is not ${expected}` }
}

function asGiven (value: unknown, read: number): string | undefined {
  return value === read ? undefined : `${shownValue(value)}.`
}

function shownValue (value: unknown) {
  const isList = typeof value === 'object' && value !== null
  const text = typeof value === 'string' ? `"${value}"` : isList ? wordsOf(value).join(' ') : String(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
