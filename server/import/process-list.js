import path from 'node:path'
import { isObject } from '../config/is-object.js'
import { KEYS } from './keys.js'

/**
 * What `pm2 jlist` says, as a file of PM2 would say it. Each process has its whole environment in there, with what its shell
 * and PM2 have put into it.
 * @typedef {{ apps: Record<string, unknown>[], remarks: string[] }} ProcessList
 */

/** What shells, terminals, npm, cron and PM2 set, and nobody means for the app. */
const SURROUNDINGS = /^(npm_.*|PM2_.*|pm_.*|axm_.*|SSH_.*|XDG_.*|DBUS_.*|LC_.*|LESS.*|NVM_.*|VSCODE_.*|GIT_ASKPASS|SUDO_.*|SYSTEMD_.*|BASH_FUNC_.*|PATH|HOME|USER|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|_|TERM|TERM_.*|COLORTERM|COLOR|LANG|LANGUAGE|LS_COLORS|MAIL|HOSTNAME|DISPLAY|WINDOWID|WAYLAND_DISPLAY|EDITOR|PAGER|INIT_CWD|NODE|INVOCATION_ID|JOURNAL_STREAM|MAINPID|unique_id|NODE_APP_INSTANCE|CLUSTERDECK_.*)$/
/** What PM2 fills in where nobody has said anything. */
const USUAL = Object.freeze(/** @type {Record<string, unknown>} */ ({ treekill: true, autorestart: true, autostart: true, vizion: true, kill_retry_time: 100, namespace: 'default', instance_var: 'NODE_APP_INSTANCE', pmx: true, automation: true, windowsHide: true, trace: false, v8: false, write: false }))
/** These are read from elsewhere, or say how it is and not how it is to be. */
const NOT_READ = ['script', 'args', 'node_args', 'exec_interpreter', 'cwd', 'env', 'name', 'instances', 'username', 'out_file', 'error_file', 'log_file', 'pid_file', 'versioning', 'env_<name>', 'env_file', 'merge_logs']
const SECRET = /secret|token|passw|pwd|credential|private|auth|_key$|^key$|apikey|dsn|_ur[il]$/i

/**
 * @param {any[]} list
 * @param {Record<string, string | undefined>} ownEnv  what stands in there too comes from the shell
 * @returns {ProcessList}
 */
export function appsOfList (list, ownEnv) {
  const processes = list.filter((each) => isObject(each) && isObject(each.pm2_env)).map(({ pm2_env: env }) => env)
  const [modules, own] = [processes.filter((env) => env.pmx_module), processes.filter((env) => !env.pmx_module)]
  const groups = groupBy(own, groupOf)
  const found = [...groups.values()].map((group) => appOf(group, ownEnv))
  return {
    apps: found.map(({ app }) => app),
    remarks: [
      ...found.flatMap(({ remarks }) => remarks),
      ...new Set(modules.map(({ name }) => `Left out: ${name}, a module of PM2.`))
    ]
  }
}

/** @param {any} env */
function groupOf (env) {
  return JSON.stringify([env.name, env.pm_exec_path])
}

/** @template T @param {T[]} values @param {(value: T) => string} keyOf @returns {Map<string, T[]>} */
function groupBy (values, keyOf) {
  const groups = new Map()
  for (const value of values) groups.set(keyOf(value), [...groups.get(keyOf(value)) ?? [], value])
  return groups
}

/** @param {any[]} group the processes of one app @param {Record<string, string | undefined>} ownEnv */
function appOf (group, ownEnv) {
  const [first] = group
  const given = isObject(first.env) ? Object.entries(first.env) : []
  const taken = given.filter(([name, value]) => !SURROUNDINGS.test(name) && isPlain(value) && ownEnv[name] !== String(value))
  const left = given.map(([name]) => name).filter((name) => !SURROUNDINGS.test(name) && !taken.some(([each]) => each === name))
  const secret = taken.map(([name]) => name).filter((name) => SECRET.test(name))
  const said = Object.keys(KEYS).filter((key) => !NOT_READ.includes(key) && first[key] !== undefined && first[key] !== null && first[key] !== USUAL[key] && !Object.hasOwn(first.env ?? {}, key))
  const base = isText(first.increment_var) ? Math.min(...group.map((env) => Number(env[first.increment_var]))) : NaN
  return {
    app: {
      name: first.name,
      script: first.pm_exec_path,
      cwd: first.pm_cwd,
      instances: group.length,
      ...(first.exec_interpreter && { exec_interpreter: isOwnNode(first.exec_interpreter) ? 'node' : first.exec_interpreter }),
      ...(isFilled(first.args) && { args: first.args }),
      ...(isFilled(first.node_args) && { node_args: first.node_args }),
      ...(taken.length > 0 && { env: { ...Object.fromEntries(taken), ...(Number.isFinite(base) && { [first.increment_var]: base }) } }),
      ...Object.fromEntries(said.map((key) => [key, first[key]]))
    },
    remarks: [
      `${first.name}: of its environment, variables of the shell and of PM2 are left out, and what is the same in the shell of the import.`,
      ...(taken.length > 0 ? [`${first.name}: taken with their values: ${taken.map(([name]) => name).join(', ')}.`] : []),
      ...(secret.length > 0 ? [`${first.name}: these may be secret: ${secret.join(', ')}. An envFile that only the app may read is a better place.`] : []),
      ...(left.length > 0 ? [`${first.name}: left out, as this shell has the same: ${left.join(', ')}.`] : [])
    ]
  }
}

/** @param {string} interpreter */
function isOwnNode (interpreter) {
  return path.basename(interpreter) === 'node' && interpreter === process.execPath
}

/** @param {unknown} value */
function isPlain (value) {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

/** @param {unknown} value */
function isText (value) {
  return typeof value === 'string' && value !== ''
}

/** @param {unknown} value */
function isFilled (value) {
  return Array.isArray(value) ? value.length > 0 : isText(value)
}
