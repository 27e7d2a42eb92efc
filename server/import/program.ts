import path from 'node:path'
import { commandWords, wordsOf } from './values.ts'

/** The program to run, or why there is none. */
export type Program = {
  /** Node does not run it */
  isOther?: boolean,
  /** an absolute path, or the name of a command such as npm */
  entry: string,
  isCommand: boolean,
  args: string[],
  /** options of node */
  execArgv: string[],
  /** the Node of PM2: its path or its version */
  node?: string,
  /** variables before the command */
  env: Record<string, string>,
  notes: string[]
}
export type Foreign = { reason: string, nearest: string }
/** `runs`: null: unknown */
export type Sight = { file: string | null, runs: 'node' | 'other' | null }
type Rest = { execArgv: string[], env: Record<string, string>, notes: string[], cwd: string, look: Look }
/** finds a script as PM2 does: below cwd, then as a command */
export type Look = (script: string, cwd: string) => Sight

const NODE = /^node(js)?(\d+)?(\.exe)?$/
/** Commands that are Node programs themselves. */
const NODE_COMMANDS = Object.freeze(['npm', 'npx', 'yarn', 'yarnpkg', 'pnpm', 'pnpx'])
/** Node programs that run another one. */
const RUNNERS = ['tsx', 'ts-node', 'ts-node-esm', 'ts-node-dev', 'babel-node', 'swc-node', 'esno', 'vite-node',
  'coffee', 'lsc', 'nodemon']
/** Commands that are no Node programs, even if they are not installed here. */
const OTHERS = ['bash', 'sh', 'zsh', 'dash', 'python', 'python2', 'python3', 'java', 'php', 'ruby', 'perl', 'go',
  'dotnet', 'deno', 'bun', 'bunx', 'docker', 'gunicorn', 'uvicorn', 'celery', 'flask', 'django-admin', 'uv', 'poetry',
  'pipenv', 'bundle', 'rails', 'artisan', 'caddy', 'nginx', 'redis-server', 'make']
/** The table of PM2, in lib/API/interpreter.json. */
const LANGUAGES: Readonly<Record<string, string>> = { '.sh': 'bash', '.py': 'python3', '.rb': 'ruby', '.php': 'php',
  '.pl': 'perl', '.jar': 'java -jar' }
const JAVASCRIPT = /\.([cm]?[jt]s|[jt]sx|coffee|ls)$/
const SHELLS = ['sh', 'bash', 'dash', 'zsh']
/** Options of node whose value is the next word. */
const WITH_VALUE = ['-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions',
  '--env-file', '--env-file-if-exists', '--title']
const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s

/** `app`: by PM2's own names of the keys */
export function programOf (app: Record<string, unknown>, { cwd, look }: { cwd: string, look: Look }):
  | Program
  | Foreign
{
  const { script } = app
  if (typeof script !== 'string' || script.trim() === '' || script.includes('\0'))
    return { reason: 'It names no script', nearest: 'name one as "entry"' }
  if (script === 'serve' || script.endsWith('/pm2/lib/API/Serve.js')) {
    return { reason: 'It is PM2\'s own server of static files',
      nearest: 'npm install http-server, and an app { entry: "http-server", args: ["public", "-p", "8080"] }' }
  }
  const [args, execArgv] = [wordsOf(app.args), wordsOf(app.node_args)]
  const interpreter = typeof app.exec_interpreter === 'string' && !['', 'none'].includes(app.exec_interpreter)
    ? app.exec_interpreter
    : null
  if (interpreter !== null && !isNode(interpreter)) return runBy(interpreter, { script, args, execArgv, cwd })
  if (app.exec_interpreter === 'none' && look(script, cwd).runs === 'other')
    return otherProgram(path.resolve(cwd, script), args)
  const node = interpreter === null ? null : nodeOf(interpreter)
  const notes = interpreter !== null && !['node', 'nodejs'].includes(interpreter) && node === null
    ? [
      `exec_interpreter: ${interpreter}. Name its path by the option node; without it, the app runs on the Node with which clusterdeck is called.`
    ]
    : []
  const line = lineOf(script, args, look(script, cwd))
  const program = line !== null
    ? lineWords(line, { execArgv, notes, cwd, look })
    : programOfWords({ command: script, args, execArgv, env: {}, notes, cwd, look })
  return node === null || 'reason' in program ? program : { ...program, node }
}

/** @returns for the option `node`; null: only PATH tells */
function nodeOf (interpreter: string): string | null {
  const [, version] = /^node@v?(\d+(?:\.\d+){0,2})$/.exec(interpreter) ?? []
  return version ?? (path.isAbsolute(interpreter) ? interpreter : null)
}

function isNode (interpreter: string) {
  return NODE.test(path.basename(interpreter)) || interpreter.startsWith('node@')
}

/** PM2 hands a script with a blank in it to a shell. */
function lineOf (script: string, args: string[], { file }: Sight): string | null {
  if (SHELLS.includes(path.basename(script)) && args.length === 2 && args[0] === '-c') return args[1]
  return /\s/.test(script.trim()) && file === null ? script : null
}

function lineWords (line: string,
  { execArgv, notes, cwd, look }: { execArgv: string[], notes: string[], cwd: string, look: Look }): Program | Foreign
{
  const all = commandWords(line)
  const command = all?.findIndex((word) => !ASSIGNMENT.test(word)) ?? -1
  if (all === null || command === -1) {
    return otherProgram('/bin/sh', ['-c', line])
  }
  const env = Object.fromEntries(
    all.slice(0, command).map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
  )
  return programOfWords({ command: all[command], args: all.slice(command + 1), execArgv, env, notes, cwd, look })
}

function programOfWords (
  { command, args, execArgv, env, notes, cwd, look }: Rest & { command: string, args: string[] }
): Program | Foreign {
  const { file, runs } = look(command, cwd)
  const name = path.basename(command)
  const isHere = file !== null && file === path.resolve(cwd, command)
  if (NODE.test(name) && (path.isAbsolute(command) || !isHere))
    return nodeLine(args, { execArgv, env, notes, cwd, look })
  if (NODE_COMMANDS.includes(name) && (path.isAbsolute(command) || !isHere))
    return { entry: name, isCommand: true, args, execArgv, env, notes }
  const language = LANGUAGES[path.extname(command)]
  if (language !== undefined) {
    const [entry, ...options] = language.split(' ')
    return otherProgram(entry, [...options, command, ...args], env)
  }
  if (isHere || path.isAbsolute(command) || JAVASCRIPT.test(command) || command.includes('/')) {
    if (runs === 'other') return otherProgram(path.resolve(cwd, command), args, env)
    const missing = file === null ? [`script: ${command} was missing when this was written.`] : []
    return { entry: path.resolve(cwd, command), isCommand: false, args, execArgv, env, notes: [...notes, ...missing] }
  }
  if (runs === 'other' || (runs === null && OTHERS.includes(name))) return otherProgram(command, args, env)
  const missing = runs === null ? [`script: no program of the name ${command} was found when this was written.`] : []
  return { entry: command, isCommand: true, args, execArgv, env, notes: [...notes, ...missing] }
}

/** Reads `node --inspect app.js --verbose`. */
function nodeLine (given: string[], { execArgv, env, notes, cwd, look }: Rest): Program | Foreign {
  let at = 0
  while (at < given.length && given[at].startsWith('-')) at += WITH_VALUE.includes(given[at]) ? 2 : 1
  if (given[at] === undefined) return { reason: 'node is given no file', nearest: 'name one as "entry"' }
  const isMissing = look(given[at], cwd).file === null
  return { entry: path.resolve(cwd, given[at]), isCommand: false, args: given.slice(at + 1),
    execArgv: [...execArgv, ...given.slice(0, at)], env,
    notes: isMissing ? [...notes, `script: ${given[at]} was missing when this was written.`] : notes }
}

function runBy (interpreter: string,
  { script, args, execArgv, cwd }: { script: string, args: string[], execArgv: string[], cwd: string }): Program
{
  const name = path.basename(interpreter)
  const isPath = interpreter.includes('/')
  const entry = isPath ? path.resolve(cwd, interpreter) : interpreter
  if (!RUNNERS.includes(name)) return otherProgram(entry, [...execArgv, script, ...args])
  return { entry, isCommand: !isPath, args: [...execArgv, script, ...args], execArgv: [], env: {},
    notes: [
      `exec_interpreter: ${name} is a Node program itself, so it is the entry, and the script its first argument.`
    ] }
}

/** `entry`: a path or the name of a command */
function otherProgram (entry: string, args: string[], env: Record<string, string> = {}): Program {
  return { isOther: true, entry, isCommand: !entry.includes('/'), args, execArgv: [], env, notes: [] }
}
