import path from 'node:path'
import { commandWords, wordsOf } from './values.js'

/**
 * What is to run: a Node program, or why it is none.
 * @typedef {object} Program
 * @property {string} entry  an absolute path, or the name of a command such as npm
 * @property {boolean} isCommand
 * @property {string[]} args
 * @property {string[]} execArgv  options of node
 * @property {Record<string, string>} env  what stood before the command
 * @property {string[]} notes
 *
 * @typedef {{ reason: string, nearest: string | null, command: string[] }} Foreign  `nearest`: null: systemd alone; `command`: what PM2 runs, for systemd; none: not for it
 * @typedef {{ file: string | null, runs: 'node' | 'other' | null }} Sight  `file`: where it is; `runs`: what runs it, null where nobody can tell
 * @typedef {(script: string, cwd: string) => Sight} Look  finds a script as PM2 does: below cwd, then as a command
 */

const NODE = /^node(js)?(\d+)?(\.exe)?$/
/** Commands that are Node programs themselves, wherever they are installed. */
const NODE_COMMANDS = Object.freeze(['npm', 'npx', 'yarn', 'yarnpkg', 'pnpm', 'pnpx'])
/** Node programs that run another one. */
const RUNNERS = Object.freeze(['tsx', 'ts-node', 'ts-node-esm', 'ts-node-dev', 'babel-node', 'swc-node', 'esno', 'vite-node', 'coffee', 'lsc', 'nodemon'])
/** Commands that are no Node programs, where nobody can look. */
const OTHERS = Object.freeze(['bash', 'sh', 'zsh', 'dash', 'python', 'python2', 'python3', 'java', 'php', 'ruby', 'perl', 'go', 'dotnet', 'deno', 'bun', 'bunx', 'docker', 'gunicorn', 'uvicorn', 'celery', 'flask', 'django-admin', 'uv', 'poetry', 'pipenv', 'bundle', 'rails', 'artisan', 'caddy', 'nginx', 'redis-server', 'make'])
/** As PM2 has them, in lib/API/interpreter.json. */
const LANGUAGES = /** @type {Readonly<Record<string, string>>} */ (Object.freeze({ '.sh': 'bash', '.py': 'python3', '.rb': 'ruby', '.php': 'php', '.pl': 'perl', '.jar': 'java -jar' }))
const JAVASCRIPT = /\.([cm]?[jt]s|[jt]sx|coffee|ls)$/
const SHELLS = ['sh', 'bash', 'dash', 'zsh']
/** Options of node whose value is the next word. */
const WITH_VALUE = ['-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions', '--env-file', '--env-file-if-exists', '--title']
const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s

/**
 * @param {Record<string, unknown>} app by PM2's own names of the keys
 * @param {{ cwd: string, look: Look }} place
 * @returns {Program | Foreign}
 */
export function programOf (app, { cwd, look }) {
  const { script } = app
  if (typeof script !== 'string' || script.trim() === '' || script.includes('\0')) return foreignProgram('It names no script', [], 'name one as "entry"')
  if (script === 'serve' || script.endsWith('/pm2/lib/API/Serve.js')) return foreignProgram("It is PM2's own server of static files", [], 'npm install http-server, and an app { entry: "http-server", args: ["public", "-p", "8080"] }')
  const [args, execArgv] = [wordsOf(app.args), wordsOf(app.node_args)]
  const interpreter = typeof app.exec_interpreter === 'string' && !['', 'none'].includes(app.exec_interpreter) ? app.exec_interpreter : null
  if (interpreter !== null && !isNode(interpreter)) return runBy(interpreter, { script, args, execArgv, cwd })
  const notes = interpreter !== null && interpreter !== 'node' ? [`exec_interpreter: ${interpreter}. Workers run on the Node that clusterdeck itself is started with, here ${process.version}.`] : []
  const line = lineOf(script, args, look(script, cwd))
  return line === null ? programOfWords({ command: script, args, execArgv, env: {}, notes, cwd, look }) : lineWords(line, { execArgv, notes, cwd, look })
}

/** @param {string} interpreter */
function isNode (interpreter) {
  return NODE.test(path.basename(interpreter)) || interpreter.startsWith('node@')
}

/** What PM2 hands to a shell: a script with a blank in it. @param {string} script @param {string[]} args @param {Sight} sight @returns {string | null} */
function lineOf (script, args, { file }) {
  if (SHELLS.includes(path.basename(script)) && args.length === 2 && args[0] === '-c') return args[1]
  return /\s/.test(script.trim()) && file === null ? script : null
}

/** @param {string} line @param {{ execArgv: string[], notes: string[], cwd: string, look: Look }} rest @returns {Program | Foreign} */
function lineWords (line, { execArgv, notes, cwd, look }) {
  const all = commandWords(line)
  const command = all?.findIndex((word) => !ASSIGNMENT.test(word)) ?? -1
  if (all === null || command === -1) return foreignProgram('It is a line for a shell', ['/bin/sh', '-c', line], 'a script of package.json, and an app { entry: "npm", args: ["run", "…"] }')
  const env = Object.fromEntries(all.slice(0, command).map((word) => /** @type {RegExpExecArray} */ (ASSIGNMENT.exec(word)).slice(1, 3)))
  return programOfWords({ command: all[command], args: all.slice(command + 1), execArgv, env, notes, cwd, look })
}

/** @param {{ command: string, args: string[], execArgv: string[], env: Record<string, string>, notes: string[], cwd: string, look: Look }} what @returns {Program | Foreign} */
function programOfWords ({ command, args, execArgv, env, notes, cwd, look }) {
  const { file, runs } = look(command, cwd)
  const name = path.basename(command)
  const isHere = file !== null && file === path.resolve(cwd, command)
  if (NODE.test(name) && (path.isAbsolute(command) || !isHere)) return nodeLine(args, { execArgv, env, notes, cwd, look })
  if (NODE_COMMANDS.includes(name) && (path.isAbsolute(command) || !isHere)) return { entry: name, isCommand: true, args, execArgv, env, notes }
  const language = LANGUAGES[path.extname(command)]
  if (language !== undefined) return foreignProgram(`${language.split(' ')[0]} runs it, not Node`, [...language.split(' '), path.resolve(cwd, command), ...args])
  if (isHere || path.isAbsolute(command) || JAVASCRIPT.test(command) || command.includes('/')) {
    if (runs === 'other') return foreignProgram('It is no JavaScript', [path.resolve(cwd, command), ...args])
    const missing = file === null ? [`script: ${command} was not there when this was written.`] : []
    return { entry: path.resolve(cwd, command), isCommand: false, args, execArgv, env, notes: [...notes, ...missing] }
  }
  if (runs === 'other' || (runs === null && OTHERS.includes(name))) return foreignProgram(`${name} is no Node program`, [command, ...args])
  return { entry: command, isCommand: true, args, execArgv, env, notes: runs === null ? [...notes, `script: no program of the name ${command} was found when this was written.`] : notes }
}

/** `node --inspect app.js --verbose` @param {string[]} given @param {{ execArgv: string[], env: Record<string, string>, notes: string[], cwd: string, look: Look }} rest @returns {Program | Foreign} */
function nodeLine (given, { execArgv, env, notes, cwd, look }) {
  let at = 0
  while (at < given.length && given[at].startsWith('-')) at += WITH_VALUE.includes(given[at]) ? 2 : 1
  if (given[at] === undefined) return foreignProgram('node is given no file', [], 'name one as "entry"')
  const isMissing = look(given[at], cwd).file === null
  return {
    entry: path.resolve(cwd, given[at]),
    isCommand: false,
    args: given.slice(at + 1),
    execArgv: [...execArgv, ...given.slice(0, at)],
    env,
    notes: isMissing ? [...notes, `script: ${given[at]} was not there when this was written.`] : notes
  }
}

/** @param {string} interpreter @param {{ script: string, args: string[], execArgv: string[], cwd: string }} what @returns {Program | Foreign} */
function runBy (interpreter, { script, args, execArgv, cwd }) {
  const name = path.basename(interpreter)
  const isPath = interpreter.includes('/')
  if (!RUNNERS.includes(name)) return foreignProgram(`${name} runs it, not Node`, [isPath ? path.resolve(cwd, interpreter) : interpreter, ...execArgv, path.resolve(cwd, script), ...args])
  return {
    entry: isPath ? path.resolve(cwd, interpreter) : interpreter,
    isCommand: !isPath,
    args: [...execArgv, script, ...args],
    execArgv: [],
    env: {},
    notes: [`exec_interpreter: ${name} is a Node program itself, so it is the entry, and the script its first argument.`]
  }
}

/** @param {string} reason @param {string[]} command @param {string | null} [nearest] @returns {Foreign} */
function foreignProgram (reason, command, nearest = null) {
  return { reason, nearest, command }
}
