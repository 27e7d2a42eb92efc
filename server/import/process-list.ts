import path from 'node:path'
import { isObject } from '../config/is-object.ts'
import { KEYS } from './keys.ts'

/**
 * The list of `pm2 jlist`, in the form of a file of PM2. It has the whole environment of each process, with variables
 * of its shell and of PM2.
 */
type ProcessList = { apps: Record<string, unknown>[], remarks: string[] }

/** Variables of shells, terminals, npm, cron and PM2, which are not meant for the app. */
const SURROUNDINGS = [/^(npm|PM2|pm|axm|SSH|XDG|DBUS|LC|NVM|VSCODE|SUDO|SYSTEMD|BASH_FUNC|TERM|CLUSTERDECK)_/, /^LESS/,
  /^(GIT_ASKPASS|PATH|HOME|USER|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|_|TERM|COLORTERM|COLOR|LANG|LANGUAGE|LS_COLORS|MAIL|HOSTNAME|DISPLAY|WINDOWID)$/,
  /^(WAYLAND_DISPLAY|EDITOR|PAGER|INIT_CWD|NODE|INVOCATION_ID|JOURNAL_STREAM|MAINPID|unique_id|NODE_APP_INSTANCE)$/]
/** Defaults that PM2 fills in. */
const USUAL: Readonly<Record<string, unknown>> = { treekill: true, autorestart: true, autostart: true, vizion: true,
  kill_retry_time: 100, namespace: 'default', instance_var: 'NODE_APP_INSTANCE', pmx: true, automation: true,
  windowsHide: true, trace: false, v8: false, write: false }
/** Keys that are read from elsewhere, or that tell the state of a process and not its configuration. */
const NOT_READ = ['script', 'args', 'node_args', 'exec_interpreter', 'cwd', 'env', 'name', 'instances', 'username',
  'out_file', 'error_file', 'log_file', 'pid_file', 'versioning', 'pm_pid', 'env_<name>', 'env_file', 'merge_logs']
const SECRET = /secret|token|passw|pwd|credential|private|auth|_key$|^key$|apikey|dsn|_ur[il]$/i

/** `ownEnv`: a variable that is the same in here comes from the shell */
export function appsOfList (list: unknown[], ownEnv: Record<string, string | undefined>): ProcessList {
  const processes = list.flatMap((each) => isObject(each) && isObject(each.pm2_env) ? [each.pm2_env] : [])
  const modules = processes.filter((env) => env.pmx_module)
  const found = groupsOf(list).map((group) => appOf(group, ownEnv))
  return { apps: found.map(({ app }) => app),
    remarks: [
      ...(found.length > 0
        ? ['Variables of the shell and of PM2 are left out, and those with the same value in this shell.']
        : []),
      ...found.flatMap(({ remarks }) => remarks),
      ...[...Map.groupBy(found.filter(({ left }) => left !== ''), ({ left }) => left)].map(([left, group]) =>
        `${group.map(({ app }) => app.name).join(', ')}: left out, as this shell has the same: ${left}.`
      ),
      ...(found.some(({ hasSecrets }) => hasSecrets)
        ? ['An envFile that only the app may read is a better place for what may be secret.']
        : []),
      ...new Set(modules.map(({ name }) => `Left out: ${name}, a module of PM2.`))
    ] }
}

/** @returns what it has of the processes of each app; `pm_pid`: the number of the process */
export function groupsOf (list: unknown[]): Record<string, unknown>[][] {
  const own: Record<string, unknown>[] = list.flatMap((each) =>
    isObject(each) && isObject(each.pm2_env) && !each.pm2_env.pmx_module ? [{ ...each.pm2_env, pm_pid: each.pid }] : []
  )
  return [...Map.groupBy(own, (env) => JSON.stringify([env.name, env.pm_exec_path])).values()]
}

/** `group`: the processes of one app */
function appOf (group: Record<string, unknown>[], ownEnv: Record<string, string | undefined>) {
  const [first] = group
  const online = group.filter(({ status }) => status !== 'stopped')
  const given = isObject(first.env) ? Object.entries(first.env) : []
  // PM2 adds a variable that has the name of the app, and nothing in it.
  const ofApp = given.filter(([name, value]) =>
    !(name === first.name && (isObject(value) || value === '{}')) && !SURROUNDINGS.some((pattern) => pattern.test(name))
  )
  const taken = ofApp.filter(([name, value]) => isPlain(value) && ownEnv[name] !== String(value))
  const left = ofApp.map(([name]) => name).filter((name) => !taken.some(([each]) => each === name))
  const secret = taken.map(([name]) => name).filter((name) => SECRET.test(name))
  const said = Object.keys(KEYS).filter((key) => {
    const value = first[key]
    return !NOT_READ.includes(key) && value !== undefined && value !== null && value !== USUAL[key] &&
      !given.some(([name]) => name === key)
  })
  const { increment_var: counted, exec_interpreter: interpreter, cron_restart: cron } = first
  const isStopped = online.length === 0
  // Nothing tells a job in one of its runs from one between two of them.
  const isWithoutCron = isStopped && hasCron(first) && !isJob(first)
  const base = isText(counted) ? Math.min(...group.map((env) => Number(env[counted]))) : NaN
  return { hasSecrets: secret.length > 0,
    app: { name: first.name, script: first.pm_exec_path, cwd: first.pm_cwd, instances: online.length || group.length,
      ...(isText(interpreter) && { exec_interpreter: isOwnNode(interpreter) ? 'node' : interpreter }),
      ...(isFilled(first.args) && { args: first.args }),
      ...(isFilled(first.node_args) && { node_args: first.node_args }),
      ...(taken.length > 0 &&
        {
          env: { ...Object.fromEntries(taken), ...(isText(counted) && Number.isFinite(base) && { [counted]: base }) }
        }),
      ...Object.fromEntries(
        said.filter((key) => key !== 'cron_restart' || !isWithoutCron).map((key) => [key, first[key]])
      ), ...((isStopped || isJob(first)) && { autostart: false }) },
    remarks: [
      ...(isWithoutCron
        ? [
          `${first.name}: somebody has stopped it, and PM2 would start it all the same at ${cron} (cron_restart). Here it stays stopped until clusterdeck start; restart.cron is left out.`
        ]
        : []),
      ...(taken.length > 0
        ? [`${first.name}: taken with their values: ${taken.map(([name]) => name).join(', ')}.`]
        : []),
      ...(secret.length > 0 ? [`${first.name}: these may be secret: ${secret.join(', ')}.`] : [])
    ], left: left.join(', ') }
}

/** `env`: of a process. Returns whether PM2 runs it by the clock alone: its end is not the end of the app. */
export function isJob (env: Record<string, unknown>): boolean {
  return hasCron(env) && (env.autorestart === false || env.autostart === false)
}

/** PM2 starts it by the clock, whatever it is told to stop. `env`: of a process. */
export function hasCron ({ cron_restart: cron }: Record<string, unknown>) {
  return isText(cron) && cron !== '0'
}

function isOwnNode (interpreter: string) {
  return path.basename(interpreter) === 'node' && interpreter === process.execPath
}

function isPlain (value: unknown) {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isFilled (value: unknown) {
  return Array.isArray(value) ? value.length > 0 : isText(value)
}
