import { MAX_WORKERS } from '../config/options.js'
import { Expression } from './literal.js'
import { bytesOf, integerOf, isOn, millisecondsOf, wordsOf } from './values.js'

/**
 * What becomes of each key that PM2 knows (lib/API/schema.json of PM2 7, and what its code reads besides).
 *
 * @typedef {'carried over' | 'replaced' | 'left out'} Fate
 * @typedef {{ set: Record<string, unknown>, note?: string } | { left: string } | null} Outcome  `set`: values by the name of the option; null: nothing has to be said
 *
 * @typedef {object} Scene what a key is read in
 * @property {Record<string, unknown>} app  by PM2's own names of the keys
 * @property {import('./program.js').Program} program
 * @property {Record<string, unknown>} env  for the option of that name
 * @property {(file: string) => string} path  as the config file is to have it
 * @property {string | undefined} envName
 *
 * @typedef {object} Row
 * @property {string[]} [also]  its other names
 * @property {Fate} fate  of a value that can be read
 * @property {string} becomes  for the manual: options, or what is nearest
 * @property {string} about  for the manual, and for the config file where it is left out: a sentence
 * @property {unknown[]} [usual]  values that change nothing here
 * @property {(value: any, scene: Scene) => Outcome} [read]  without it, it is left out
 */

const MAX_PORT_PER_SLOT = 65535 - MAX_WORKERS
const LEAST_RSS_BYTES = 16 * 1024 ** 2
/** PM2's own, in constants.js and lib/God.js. */
const PM2_LONGEST_DELAY_MS = 15_000
const PM2_BACKOFF_RESET_MS = 30_000
const READY_TIMEOUT_MS = 30_000
const CRON = /^\s*(?:[\w*,/?#+.-]+\s+){4,5}[\w*,/?#+.-]+\s*$/
const CRON_NAMES = /** @type {Readonly<Record<string, string>>} */ (Object.freeze({ '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0', '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@hourly': '0 * * * *' }))
const LOG_FOLDER = 'The output of each worker goes to a file of its own in the data folder, rotated by size; `clusterdeck logs` prints them together'

/** @type {Readonly<Record<string, Row>>} */
export const KEYS = Object.freeze(/** @type {Record<string, Row>} */ ({
  script: {
    also: ['exec', 'cmd', 'command'],
    fate: 'carried over',
    becomes: '`entry`',
    about: 'A file, an installed program or `npm`, `npx`, `yarn`, `pnpm`. A line such as `node app.js --port 80` is taken apart; one that needs a shell is left out.',
    read: (_value, { program, path }) => ({
      set: {
        entry: program.isCommand ? program.entry : plainEntry(path(program.entry)),
        ...(program.args.length > 0 && { args: program.args }),
        ...(program.execArgv.length > 0 && { execArgv: program.execArgv })
      }
    })
  },
  args: {
    fate: 'carried over',
    becomes: '`args`',
    about: 'A text is cut at blanks, and keeps what stands in quotes together, as PM2 does it.',
    read: (_value, { program }) => program.args.length > 0 ? { set: { args: program.args } } : null
  },
  node_args: {
    also: ['nodeArgs', 'interpreterArgs', 'interpreter_args'],
    fate: 'carried over',
    becomes: '`execArgv`',
    about: 'Options of node itself.',
    read: (_value, { program: { execArgv, args } }) => execArgv.length > 0 ? { set: { execArgv } } : args.length > 0 ? { set: { args } } : null
  },
  exec_interpreter: {
    also: ['interpreter', 'execInterpreter'],
    fate: 'replaced',
    becomes: 'the Node that runs clusterdeck',
    about: 'A program that Node does not run is left out, with a systemd unit for it. `tsx`, `ts-node` and their like become the entry. Another version of Node: start clusterdeck by it.',
    usual: ['node', 'none', 'nodejs'],
    read: (_value, { program: { notes } }) => ({ set: {}, note: notes.find((note) => note.startsWith('exec_interpreter:'))?.replace(/^exec_interpreter: /, '') })
  },
  cwd: {
    fate: 'carried over',
    becomes: '`cwd`',
    about: 'Relative to the config file.',
    read: (value, { path }) => isText(value) ? { set: { cwd: path(value) } } : notRead('a folder')
  },
  env: {
    fate: 'carried over',
    becomes: '`env`',
    about: 'Numbers become texts, objects JSON, as PM2 does it.',
    read: (value, { env }) => typeof value === 'object' ? withEnv(env) : notRead('an object')
  },
  'env_<name>': {
    fate: 'carried over',
    becomes: '`env`, with `--env <name>`',
    about: 'Over `env`. The variables of `deploy.<name>.env` come between them. Without `--env` they are left out.'
  },
  env_file: {
    also: ['envFile'],
    fate: 'carried over',
    becomes: '`envFile`',
    about: 'PM2 7 itself does not read it.',
    read: (value, { path }) => isText(value) ? { set: { envFile: path(value) } } : notRead('one file')
  },
  filter_env: {
    also: ['filterEnv'],
    fate: 'carried over',
    becomes: '`env`, with `null`',
    about: '`true` is left out: `env -i PATH="$PATH" clusterdeck start` begins with an empty environment.',
    usual: [false, ''],
    read: (value, { env }) => value !== true && Object.keys(env).length > 0 ? withEnv(env) : { left: 'PM2 hands the app no variable of the shell. Nearest: env -i PATH="$PATH" clusterdeck start' }
  },
  port: {
    fate: 'carried over',
    becomes: '`env.PORT`',
    about: 'Over the `PORT` of `env`, below that of `env_<name>`, as PM2 does it.',
    usual: [0],
    read: (_value, { env }) => withEnv(env)
  },
  instances: {
    fate: 'carried over',
    becomes: '`workers`',
    about: '`0` and `max` are one for each CPU. `-1` is one fewer, counted where the app starts. Without it: 1.',
    read: workersOf
  },
  exec_mode: {
    also: ['execMode'],
    fate: 'replaced',
    becomes: 'shared sockets',
    about: 'Workers always share what they listen on, as in cluster mode. In fork mode several instances need a port each: see `increment_var`.',
    read: (value, { app }) => isFork(value) && (integerOf(app.instances) ?? 1) !== 1 ? { set: {}, note: 'PM2 runs separate processes in this mode; here all workers share one port.' } : { set: {}, note: 'Workers always share what they listen on.' }
  },
  increment_var: {
    also: ['incrementVar'],
    fate: 'replaced',
    becomes: '`portPerSlot`',
    about: 'For `PORT`: all workers share the port itself, and worker N has port + N besides. Another variable: count from `NODE_APP_INSTANCE`, which is 0, 1, 2, ….',
    read: portPerSlotOf
  },
  instance_var: {
    also: ['instanceVar'],
    fate: 'carried over',
    becomes: '`instanceVariable`',
    about: 'It counts the workers of one app from 0 on.',
    usual: ['NODE_APP_INSTANCE'],
    read: (value) => ({ set: { instanceVariable: value } })
  },
  name: {
    fate: 'carried over',
    becomes: 'the name below `apps`; of one app alone, `name`',
    about: 'Letters, digits and `. _ -` stay. `-n <name>` addresses the deck in every command.',
    read: () => ({ set: {}, note: 'the name below apps; of one app alone, the option name' })
  },
  append_env_to_name: {
    also: ['appendEnvToName'],
    fate: 'carried over',
    becomes: 'the name below `apps`',
    about: 'With `--env`.',
    usual: [false],
    read: (_value, { envName }) => envName === undefined ? null : { set: {}, note: 'the name below apps' }
  },
  max_memory_restart: {
    also: ['maxMemoryRestart'],
    fate: 'carried over',
    becomes: '`recycle.maxRssBytes`',
    about: 'The next worker is ready before the old one drains. PM2 looks every 30 seconds, clusterdeck acts after 5. At least 16 MiB.',
    read (value) {
      const bytes = bytesOf(value)
      if (bytes === null) return notRead('a size such as "300M"')
      return bytes >= LEAST_RSS_BYTES ? { set: { 'recycle.maxRssBytes': bytes }, note: asGiven(value, bytes) } : { left: `${shownValue(value)} is less than a Node process takes. Nearest: recycle.maxRssBytes, from 16 MiB` }
    }
  },
  wait_ready: {
    also: ['waitReady'],
    fate: 'carried over',
    becomes: '`ready.signal: "message"`',
    about: "`process.send('ready')`. A worker that does not send it within `ready.timeoutMs` has failed; PM2 takes it for ready.",
    usual: [false],
    read: (value) => isOn(value) ? { set: { 'ready.signal': 'message' } } : null
  },
  listen_timeout: {
    also: ['listenTimeout'],
    fate: 'replaced',
    becomes: '`ready.timeoutMs`',
    about: 'PM2 goes on after it, ready or not; here a worker that takes longer has failed. So only more than the default of 30 seconds is carried over.',
    read (value) {
      const ms = millisecondsOf(value)
      if (ms === null) return notRead('a time')
      return ms > READY_TIMEOUT_MS ? { set: { 'ready.timeoutMs': ms }, note: asGiven(value, ms) } : { left: 'PM2 goes on after it, ready or not; here a worker that takes longer has failed, so the default of 30 seconds stays. Nearest: ready.timeoutMs' }
    }
  },
  kill_timeout: {
    also: ['killTimeout'],
    fate: 'carried over',
    becomes: '`stop.termGraceMs`',
    about: 'The worker first drains (`drain.deadlineMs`), then gets SIGTERM, where PM2 sends SIGINT, and SIGKILL after that time.',
    read (value) {
      const ms = millisecondsOf(value)
      return ms === null ? notRead('a time') : { set: { 'stop.termGraceMs': ms }, note: 'PM2 begins with SIGINT; here the worker drains, then gets SIGTERM, and SIGKILL after this time.' }
    }
  },
  kill_retry_time: {
    also: ['killRetryTime'],
    fate: 'left out',
    becomes: '',
    about: 'The end of a process is heard at once; nothing has to look for it',
    usual: [100]
  },
  shutdown_with_message: {
    also: ['shutdownWithMessage'],
    fate: 'carried over',
    becomes: '`stop.message: "text"`',
    about: "The worker gets the message `'shutdown'` once it has drained, and SIGTERM too.",
    usual: [false],
    read: (value) => isOn(value) ? { set: { 'stop.message': 'text' } } : null
  },
  treekill: {
    fate: 'left out',
    becomes: '',
    about: 'PM2 ends the children of a process too; here a worker ends its own. Under systemd all that is left ends with the unit',
    usual: [false]
  },
  restart_delay: {
    also: ['restartDelay'],
    fate: 'replaced',
    becomes: '`restart.minDelayMs`, `restart.maxDelayMs`',
    about: 'The first replacement comes at once, each further one after this delay.',
    usual: [0, '0'],
    read (value, { app }) {
      const ms = millisecondsOf(value)
      if (ms === null) return notRead('a time')
      if (isBackoff(app)) return { left: 'exp_backoff_restart_delay counts, as in PM2' }
      return { set: { 'restart.minDelayMs': ms, 'restart.maxDelayMs': ms }, note: 'The first replacement comes at once, each further one after this delay.' }
    }
  },
  exp_backoff_restart_delay: {
    also: ['expBackoffRestartDelay'],
    fate: 'carried over',
    becomes: '`restart.minDelayMs`, `restart.maxDelayMs`, `restart.resetAfterMs`',
    about: 'The delay doubles, where PM2 takes half as much again, up to the same 15 seconds. 30 seconds of life set it back.',
    usual: [0, '0'],
    read (value) {
      const ms = millisecondsOf(value)
      if (ms === null) return notRead('a time')
      return {
        set: { 'restart.minDelayMs': ms, 'restart.maxDelayMs': Math.max(ms, PM2_LONGEST_DELAY_MS), 'restart.resetAfterMs': PM2_BACKOFF_RESET_MS },
        note: 'Doubled each time, up to 15 seconds; set back after 30 seconds of life.'
      }
    }
  },
  min_uptime: {
    also: ['minUptime'],
    fate: 'replaced',
    becomes: '`restart.resetAfterMs`',
    about: 'A worker that lives longer counts as healthy, and the next delay begins anew. With `exp_backoff_restart_delay` that of PM2 counts.',
    read (value, { app }) {
      const ms = millisecondsOf(value)
      if (ms === null) return notRead('a time')
      return isBackoff(app) ? { left: 'the 30 seconds of exp_backoff_restart_delay count. Nearest: restart.resetAfterMs' } : { set: { 'restart.resetAfterMs': ms }, note: asGiven(value, ms) }
    }
  },
  max_restarts: {
    also: ['maxRestarts'],
    fate: 'replaced',
    becomes: '`restart.policy: "never"` for 0',
    about: 'A slot is never given up: it waits longer each time, and is shown and told as crash-looping. Nearest: `restart.intensity.restarts`.',
    read (value) {
      const count = integerOf(value)
      if (count === null) return notRead('a number')
      return count === 0 ? { set: { 'restart.policy': 'never' } } : { left: 'a slot is never given up: it waits longer each time, and is shown as crash-looping. Nearest: restart.intensity.restarts' }
    }
  },
  autorestart: {
    fate: 'carried over',
    becomes: '`restart.policy: "never"`',
    about: 'For `false`.',
    usual: [true],
    read: (value) => isOn(value) ? null : { set: { 'restart.policy': 'never' } }
  },
  stop_exit_codes: {
    also: ['stopExitCodes'],
    fate: 'replaced',
    becomes: '`restart.policy: "on-failure"`',
    about: 'For 0. Other codes count as failures.',
    read (value, { app }) {
      const codes = [value].flat(1).map(integerOf)
      if (app.autorestart !== undefined && !isOn(app.autorestart)) return { left: 'nothing is restarted in any case' }
      if (!codes.includes(0)) return { left: 'a worker that ends with another code than 0 has failed. Nearest: restart.policy, with 0 as the code' }
      return { set: { 'restart.policy': 'on-failure' }, ...(codes.some((code) => code !== 0) && { note: 'Of these codes 0 alone: any other one is a failure.' }) }
    }
  },
  autostart: {
    fate: 'left out',
    becomes: '`clusterdeck up <name>`',
    about: 'PM2 does not start the app by itself. `clusterdeck up` starts all apps, or those that it is given',
    usual: [true]
  },
  cron_restart: {
    also: ['cron', 'cronRestart'],
    fate: 'carried over',
    becomes: '`restart.cron`',
    about: 'Worker by worker, where PM2 restarts all at once.',
    usual: [0, '0', ''],
    read (value) {
      const cron = typeof value === 'string' ? CRON_NAMES[value.trim()] ?? value : ''
      return CRON.test(cron) ? { set: { 'restart.cron': cron.trim() } } : notRead('a pattern of five fields, or of six with seconds first')
    }
  },
  watch: {
    fate: 'replaced',
    becomes: '`watch`',
    about: 'For development: a change of a file that the workers have loaded is rolled out, new before old. PM2 restarts on any file.',
    usual: [false],
    read: (value) => !isOn(value)
      ? null
      : { set: { watch: true }, note: 'For development: rolls out a change of any file that the workers have loaded. Drop it in production.' }
  },
  ignore_watch: {
    also: ['ignoreWatch'],
    fate: 'left out',
    becomes: '',
    about: 'Only files that the workers have loaded are watched, none of node_modules: logs and data change nothing'
  },
  watch_delay: {
    also: ['watchDelay'],
    fate: 'left out',
    becomes: '',
    about: 'Changes that come together are one rollout'
  },
  watch_options: {
    also: ['watchOptions'],
    fate: 'left out',
    becomes: '',
    about: 'Only files that the workers have loaded are watched'
  },
  source_map_support: {
    also: ['sourceMapSupport'],
    fate: 'carried over',
    becomes: '`execArgv: ["--enable-source-maps"]`',
    about: 'PM2 has them on unless told otherwise, clusterdeck only by this option of node.',
    usual: [false],
    read: (value, { app, program: { execArgv } }) => isOn(value) && !isOn(app.disable_source_map_support)
      ? { set: { execArgv: execArgv.includes('--enable-source-maps') ? execArgv : [...execArgv, '--enable-source-maps'] } }
      : null
  },
  disable_source_map_support: {
    also: ['disableSourceMapSupport'],
    fate: 'carried over',
    becomes: 'nothing to say',
    about: 'Source maps are off unless `execArgv` has `--enable-source-maps`.',
    usual: [false],
    read: () => null
  },
  out_file: logKey(['out', 'output', 'out_log', 'outFile'], LOG_FOLDER),
  error_file: logKey(['error', 'err', 'err_file', 'err_log', 'errorFile'], LOG_FOLDER),
  log_file: logKey(['log', 'logFile'], `${LOG_FOLDER}, both streams in the order of their arrival`),
  merge_logs: logKey(['combine_logs', 'mergeLogs'], '`clusterdeck logs` prints all workers together'),
  log_date_format: logKey(['logDateFormat'], 'Each line is kept with its time. Nearest: `clusterdeck logs --timestamps`'),
  time: logKey([], 'Each line is kept with its time. Nearest: `clusterdeck logs --timestamps`'),
  log_type: logKey(['logType'], 'Nearest: `clusterdeck logs --json`'),
  disable_logs: logKey(['disableLogs'], 'Logs are bounded. Nearest: `logs.maxBytes` and `logs.maxFiles`'),
  pid_file: {
    also: ['pid', 'pidFile'],
    fate: 'left out',
    becomes: '`master.json` in the data folder',
    about: '`clusterdeck status --json` has the pid too'
  },
  uid: {
    also: ['user'],
    fate: 'left out',
    becomes: '`clusterdeck systemd --user`',
    about: 'All of a deck runs as who starts it. Nearest: `clusterdeck systemd --user <name>`'
  },
  gid: {
    fate: 'left out',
    becomes: '`Group=` of the unit',
    about: 'All of a deck runs as who starts it. Nearest: Group= in the unit of clusterdeck systemd'
  },
  username: {
    fate: 'left out',
    becomes: '',
    about: 'PM2 notes here who has started it'
  },
  namespace: {
    fate: 'left out',
    becomes: 'the name below `apps`',
    about: 'Nearest: a config file for each group of apps',
    usual: ['default', '']
  },
  name_prefix: {
    also: ['namePrefix'],
    fate: 'left out',
    becomes: 'the name below `apps`',
    about: 'Nearest: another name below apps'
  },
  force: {
    fate: 'left out',
    becomes: '',
    about: 'A data folder has one master; a second deck of the same app takes another one (dataDir)',
    usual: [false]
  },
  execute_command: {
    also: ['executeCommand'],
    fate: 'left out',
    becomes: '',
    about: 'It only says fork mode',
    usual: [false]
  },
  vizion: {
    fate: 'left out',
    becomes: '`clusterdeck releases`',
    about: 'Each release is described by its commit anyway. Nearest: clusterdeck releases',
    usual: [true]
  },
  versioning: { fate: 'left out', becomes: '`clusterdeck releases`', about: 'Each release is described by its commit anyway. Nearest: clusterdeck releases' },
  post_update: {
    also: ['postUpdate'],
    fate: 'left out',
    becomes: '`hooks.beforeDeploy`',
    about: 'They belong to pm2 pull. Nearest: hooks.beforeDeploy, `{ command: ["npm", "ci"] }`',
    usual: []
  },
  install_url: { also: ['installUrl'], fate: 'left out', becomes: '', about: 'It belongs to the modules of PM2' },
  trace: monitoringKey([]),
  disable_trace: monitoringKey(['disableTrace']),
  deep_monitoring: monitoringKey(['deepMonitoring']),
  event_loop_inspector: monitoringKey(['eventLoopInspector']),
  v8: monitoringKey([]),
  pmx: monitoringKey([]),
  automation: monitoringKey([]),
  io: monitoringKey([]),
  windowsHide: { fate: 'left out', becomes: '', about: 'It is for Windows alone' },
  write: { fate: 'left out', becomes: '', about: 'It tells a PM2 command to write a file' }
}))

/** Beside `apps`. @type {Readonly<Record<string, { becomes: string, about: string }>>} */
export const FILE_KEYS = Object.freeze({
  deploy: { becomes: '`clusterdeck deploy`', about: 'PM2 copies the code by ssh and git. Nearest: whatever brings the code to the machine, then `clusterdeck deploy`, or `clusterdeck deploy --path <folder>` below `releases.root`; `hooks.beforeDeploy` runs what has to come first' },
  static: { becomes: '`http-server` from npm', about: "PM2's own server of static files. Nearest: npm install http-server, and an app `{ entry: \"http-server\", args: [\"public\", \"-p\", \"8080\"] }`" }
})

/** @param {string[]} also @param {string} about @returns {Row} */
function logKey (also, about) {
  return { also, fate: 'left out', becomes: '`clusterdeck logs`', about, usual: [false] }
}

/** @param {string[]} also @returns {Row} */
function monitoringKey (also) {
  return { also, fate: 'left out', becomes: 'the dashboard, `/metrics`', about: 'It belongs to the monitoring service of PM2. Nearest: the dashboard, and /metrics for Prometheus', usual: [false] }
}

/** @param {unknown} value @param {Scene} scene @returns {Outcome} */
function workersOf (value, { app }) {
  const wanted = value === 'max' ? 0 : integerOf(value) ?? (typeof value === 'string' ? 0 : null)
  if (wanted === null) return notRead('a number or "max"')
  if (wanted === 0) return { set: { workers: 'max' }, note: `${shownValue(value)}: one for each CPU that the app may use.` }
  if (wanted < 0) return { set: { workers: new Expression(`Math.max(1, os.availableParallelism() - ${-wanted})`, 'os') }, note: `${shownValue(value)}: ${-wanted} fewer than there are CPUs, where the app runs.` }
  const isOne = wanted === 1 && isFork(app.exec_mode ?? 'fork')
  return { set: { workers: Math.min(wanted, MAX_WORKERS) }, ...(wanted > MAX_WORKERS ? { note: `${shownValue(value)} is more than ${MAX_WORKERS}, which is the most.` } : isOne ? { note: 'One process. Two or more survive the end of one, and share the port.' } : {}) }
}

/** @param {unknown} value @param {Scene} scene @returns {Outcome} */
function portPerSlotOf (value, { env }) {
  const base = isText(value) && Object.hasOwn(env, value) ? integerOf(env[value]) : null
  if (!isText(value) || !/port$/i.test(value)) return { left: `nothing counts ${shownValue(value)} up. Nearest: NODE_APP_INSTANCE, which is 0, 1, 2, … in the workers` }
  if (base === null || base < 1 || base > MAX_PORT_PER_SLOT) return { left: `${shownValue(value)} is not in env as a port from 1 to ${MAX_PORT_PER_SLOT}. Nearest: portPerSlot` }
  return { set: { portPerSlot: base }, note: `All workers share port ${base}, which ${shownValue(value)} says; worker 1 has ${base + 1} besides, worker 2 ${base + 2}, and so on.` }
}

/** @param {Record<string, unknown>} env @returns {Outcome} */
function withEnv (env) {
  return Object.keys(env).length > 0 ? { set: { env } } : null
}

/** @param {unknown} mode */
function isFork (mode) {
  return typeof mode === 'string' && mode.startsWith('fork')
}

/** @param {Record<string, unknown>} app */
function isBackoff (app) {
  return Boolean(app.exp_backoff_restart_delay) && millisecondsOf(app.exp_backoff_restart_delay) !== null
}

/** A name without folder could be that of a command. @param {string} file */
function plainEntry (file) {
  return file.includes('/') || /\.\w+$/.test(file) ? file : `./${file}`
}

/** @param {unknown} value @returns {value is string} */
function isText (value) {
  return typeof value === 'string' && value !== '' && !value.includes('\0')
}

/** @param {string} expected @returns {Outcome} */
function notRead (expected) {
  return { left: `it is not ${expected}` }
}

/** @param {unknown} value @param {number} read @returns {string | undefined} */
function asGiven (value, read) {
  return value === read ? undefined : `${shownValue(value)}.`
}

/** @param {unknown} value */
function shownValue (value) {
  const text = typeof value === 'string' ? `"${value}"` : typeof value === 'object' && value !== null ? wordsOf(value).join(' ') : String(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
