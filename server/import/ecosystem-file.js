import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { whyPathDistrusted } from '../system/trust.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { toPlain } from './plain.js'

const LOADER = fileURLToPath(new URL('./ecosystem-process.js', import.meta.url))
const PATIENCE_MS = 10_000
const MAX_STDERR = 16 * 1024
/** What PM2 itself looks for, and what people have called it since. */
const NAMES = ['ecosystem.config.js', 'ecosystem.config.cjs', 'ecosystem.config.mjs', 'ecosystem.config.json', 'ecosystem.json', 'ecosystem.config.yaml', 'ecosystem.config.yml', 'ecosystem.yaml', 'ecosystem.yml', 'pm2.config.js', 'pm2.config.cjs', 'pm2.json', 'process.json', 'process.yml', 'processes.json']
const KINDS = Object.freeze(/** @type {Record<string, (file: string, how: How) => Promise<Ecosystem>>} */ ({
  '.js': runFile, '.cjs': runFile, '.mjs': runFile, '.json': readJson, '.yaml': readYaml, '.yml': readYaml
}))

/** @typedef {{ value?: unknown, dropped: string[] }} Ecosystem `dropped`: where something was that is no data, as a function */
/** @typedef {{ env: Record<string, string | undefined>, patienceMs?: number }} How */

/**
 * @param {string | undefined} named @param {string} cwd
 * @returns {string} the file that was named, or the one that lies in the folder
 * @throws {DeckError} usage
 */
export function findEcosystem (named, cwd) {
  const file = named === undefined ? NAMES.map((name) => path.join(cwd, name)).find(isFile) : path.resolve(cwd, named)
  if (file === undefined) throw new DeckError('usage', `import: expected a file of PM2, such as ecosystem.config.js, or --pm2, received neither, and ${cwd} has none`)
  const reason = named === undefined ? whyPathDistrusted(file) : null
  if (reason !== null) throw new DeckError('usage', `import: expected ${path.basename(file)} to be a file that only root and its user can write, but ${reason}; name it if you trust it`)
  if (!isFile(file)) throw new DeckError('usage', `import: expected a file, received ${file}, which does not exist`)
  if (!Object.hasOwn(KINDS, path.extname(file))) throw new DeckError('usage', `import: expected a file that ends with one of ${Object.keys(KINDS).join(', ')}, received ${file}`)
  return file
}

/**
 * What a file of PM2 exports. One of JavaScript runs, in a process of its own; so does one of JSON that is not quite JSON,
 * as PM2 has it.
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
  } catch (/** @type {any} */ error) {
    throw unreadableError(file, error.message, error)
  }
}

/** @param {string} file */
function textOf (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (/** @type {any} */ error) {
    throw unreadableError(file, error.message, error)
  }
}

/** @param {string} file @param {How} how @returns {Promise<Ecosystem>} */
async function runFile (file, { env, patienceMs = PATIENCE_MS }) {
  const { answer, stderr, isLate } = await ofProcess(file, env, patienceMs)
  if (answer === null) throw unreadableError(file, isLate ? `nothing within ${patienceMs} ms` : lastLine(stderr) ?? 'it ended the process')
  if ('reason' in answer) throw unreadableError(file, answer.reason)
  return answer
}

/**
 * @param {string} file @param {Record<string, string | undefined>} env @param {number} patienceMs
 * @returns {Promise<{ answer: Ecosystem | { reason: string } | null, stderr: string, isLate: boolean }>}
 */
async function ofProcess (file, env, patienceMs) {
  const child = fork(LOADER, [file], { cwd: path.dirname(file), env: withoutOwnVariables(env), execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const state = { answer: /** @type {any} */ (null), stderr: '', isLate: false }
  const timer = setTimeout(() => {
    state.isLate = true
    child.kill('SIGKILL')
  }, patienceMs)
  child.once('message', (message) => {
    state.answer = message
    // What the file has begun, as a timer, is not waited for.
    child.kill('SIGKILL')
  })
  child.stderr?.setEncoding('utf8').on('data', (part) => { state.stderr = (state.stderr + part).slice(-MAX_STDERR) })
  // Not `close`: what the file has started may hold stderr for long.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  clearTimeout(timer)
  child.stderr?.destroy()
  return state
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
