import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isObject } from '../config/is-object.js'
import { DeckError, errorText } from '../errors.js'
import { durationText } from '../lifecycle/duration.js'
import { oneLine } from '../system/one-line.js'
import { whyPathDistrusted } from '../system/trust.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { toPlain } from './plain.js'

const LOADER = fileURLToPath(new URL('./ecosystem-process.js', import.meta.url))
const PATIENCE_MS = 10_000
const MAX_STDERR = 16 * 1024
/** Names that PM2 looks for, and others that are common. */
const NAMES = [
  'ecosystem.config.js', 'ecosystem.config.cjs', 'ecosystem.config.mjs', 'ecosystem.config.json', 'ecosystem.json', 'ecosystem.config.yaml',
  'ecosystem.config.yml', 'ecosystem.yaml', 'ecosystem.yml', 'pm2.config.js', 'pm2.config.cjs', 'pm2.json', 'process.json', 'process.yml', 'processes.json'
]
/** @type {Readonly<Record<string, (file: string, how: How) => Promise<Ecosystem>>>} */
const KINDS = { '.js': runFile, '.cjs': runFile, '.mjs': runFile, '.json': readJson, '.yaml': readYaml, '.yml': readYaml }

/** @typedef {{ value?: unknown, dropped: string[] }} Ecosystem `dropped`: the places of functions and others that are no data */
/** @typedef {{ env: Record<string, string | undefined>, patienceMs?: number }} How */

/**
 * @param {string | undefined} named @param {string} cwd
 * @returns {string} the file that was named, or the one that lies in the folder
 * @throws {DeckError} usage
 */
export function findEcosystem (named, cwd) {
  const file = named === undefined ? NAMES.map((name) => path.join(cwd, name)).find(isFile) : path.resolve(cwd, named)
  if (file === undefined) throw refusal('a file of PM2, such as ecosystem.config.js, or --pm2', `neither, and ${cwd} has none`)
  const reason = named === undefined ? whyPathDistrusted(file) : null
  if (reason !== null) {
    const expected = `expected ${path.basename(file)} to be a file that only root and its user can write`
    throw new DeckError('usage', `import: ${expected}, but ${reason}; name it if you trust it`)
  }
  if (!isFile(file)) throw refusal('a file', `${file}, which does not exist`)
  if (!Object.hasOwn(KINDS, path.extname(file))) throw refusal(`a file that ends with one of ${Object.keys(KINDS).join(', ')}`, file)
  return file
}

/** @param {string} expected @param {string} received */
function refusal (expected, received) {
  return new DeckError('usage', `import: expected ${expected}, received ${received}`)
}

/**
 * Reads what a file of PM2 exports. JavaScript runs in a process of its own. So does JSON with comments, which PM2 takes.
 * @param {string} file @param {How} how
 * @returns {Promise<Ecosystem>}
 * @throws {DeckError} invalid-config
 */
export async function readEcosystem (file, how) {
  return await KINDS[path.extname(file)](file, how)
}

/** @param {string} file @param {How} how @returns {Promise<Ecosystem>} */
async function readJson (file, how) {
  try {
    return { value: JSON.parse(textOf(file)), dropped: [] }
  } catch (error) {
    if (error instanceof SyntaxError) return await runFile(file, how)
    throw error
  }
}

/** @param {string} file @returns {Promise<Ecosystem>} */
async function readYaml (file) {
  const { parse } = await import('yaml')
  try {
    return toPlain(parse(textOf(file), { merge: true, logLevel: 'error' }))
  } catch (error) {
    throw unreadableError(file, errorText(error), error)
  }
}

/** @param {string} file */
function textOf (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadableError(file, errorText(error), error)
  }
}

/** @param {string} file @param {How} how @returns {Promise<Ecosystem>} */
async function runFile (file, { env, patienceMs = PATIENCE_MS }) {
  const { answer, stderr, isLate } = await ofProcess(file, env, patienceMs)
  if (answer === null) throw unreadableError(file, isLate ? `nothing within ${durationText(patienceMs)}` : lastLine(stderr) ?? 'it ended the process')
  if ('reason' in answer) throw unreadableError(file, answer.reason)
  return answer
}

/**
 * @param {string} file @param {Record<string, string | undefined>} env @param {number} patienceMs
 * @returns {Promise<State>}
 *
 * @typedef {{ answer: Ecosystem | { reason: string } | null, stderr: string, isLate: boolean }} State
 */
async function ofProcess (file, env, patienceMs) {
  const child = fork(LOADER, [file], {
    cwd: path.dirname(file),
    env: withoutOwnVariables(env),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc']
  })
  /** @type {State} */
  const state = { answer: null, stderr: '', isLate: false }
  const timer = setTimeout(() => {
    state.isLate = true
    child.kill('SIGKILL')
  }, patienceMs)
  child.once('message', (message) => {
    state.answer = toAnswer(message)
    // A timer that the file has started is not waited for.
    child.kill('SIGKILL')
  })
  child.stderr?.setEncoding('utf8').on('data', (part) => { state.stderr = (state.stderr + part).slice(-MAX_STDERR) })
  // `close` may come late: a program that the file has started can hold stderr.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  clearTimeout(timer)
  child.stderr?.destroy()
  return state
}

/** @param {unknown} message @returns {State['answer']} */
function toAnswer (message) {
  if (!isObject(message)) return null
  const { reason, value, dropped } = message
  return typeof reason === 'string' ? { reason } : { value, dropped: Array.isArray(dropped) ? dropped.map(String) : [] }
}

/** @param {string} output @returns {string | undefined} the line of a stack that says what went wrong */
function lastLine (output) {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1)
}

/** @param {string} file @param {string} reason @param {unknown} [cause] @returns {DeckError} */
function unreadableError (file, reason, cause) {
  const [line] = reason.split('\n')
  return new DeckError('invalid-config', `${file}: expected a file of PM2 that loads, received: ${oneLine(line)}`, { cause })
}

/** @param {string} file */
function isFile (file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}
