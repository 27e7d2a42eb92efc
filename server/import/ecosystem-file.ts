import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '../config/is-object.ts'
import { DeckError, errorText } from '../errors.ts'
import { isFile } from '../launch/packages.ts'
import { durationText } from '../lifecycle/duration.ts'
import { oneLine } from '../system/one-line.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { toPlain } from './plain.ts'
import { scriptPath } from '../system/built.ts'

const LOADER = scriptPath('ecosystem-process.js')
const PATIENCE_MS = 10_000
const MAX_STDERR = 16 * 1024
/** Names that PM2 looks for, and others that are common. */
const NAMES = ['ecosystem.config.js', 'ecosystem.config.cjs', 'ecosystem.config.mjs', 'ecosystem.config.json',
  'ecosystem.json', 'ecosystem.config.yaml', 'ecosystem.config.yml', 'ecosystem.yaml', 'ecosystem.yml', 'pm2.config.js',
  'pm2.config.cjs', 'pm2.json', 'process.json', 'process.yml', 'processes.json']
const KINDS: Readonly<Record<string, (file: string, how: How) => Promise<Ecosystem>>> = { '.js': runFile,
  '.cjs': runFile, '.mjs': runFile, '.json': readJson, '.yaml': readYaml, '.yml': readYaml }

/** `dropped`: the places of functions and others that are no data */
type Ecosystem = { value?: unknown, dropped: string[] }
type How = { env: Record<string, string | undefined>, patienceMs?: number }

/** Returns the file that was named, or the one that lies in the folder @throws {DeckError} usage */
export function findEcosystem (named: string | undefined, cwd: string): string {
  const file = named === undefined ? NAMES.map((name) => path.join(cwd, name)).find(isFile) : path.resolve(cwd, named)
  if (file === undefined)
    throw refusal('a file of PM2, such as ecosystem.config.js, or --pm2', `neither, and ${cwd} has none`)
  const reason = named === undefined ? whyPathDistrusted(file) : null
  if (reason !== null) {
    const expected = `expected ${path.basename(file)} to be a file that only root and its user can write`
    throw new DeckError('usage', `import: ${expected}, but ${reason}; name it if you trust it`)
  }
  if (!isFile(file)) throw refusal('a file', `${file}, which does not exist`)
  if (!Object.hasOwn(KINDS, path.extname(file)))
    throw refusal(`a file that ends with one of ${Object.keys(KINDS).join(', ')}`, file)
  return file
}

function refusal (expected: string, received: string) {
  return new DeckError('usage', `import: expected ${expected}, received ${received}`)
}

/**
 * Reads what a file of PM2 exports. JavaScript runs in a process of its own. So does JSON with comments, which PM2
 * takes.
 * @throws {DeckError} invalid-config
 */
export async function readEcosystem (file: string, how: How): Promise<Ecosystem> {
  return await KINDS[path.extname(file)](file, how)
}

async function readJson (file: string, how: How): Promise<Ecosystem> {
  try {
    return { value: JSON.parse(textOf(file)), dropped: [] }
  } catch (error) {
    if (error instanceof SyntaxError) return await runFile(file, how)
    throw error
  }
}

async function readYaml (file: string): Promise<Ecosystem> {
  const { parse } = await import('yaml')
  try {
    return toPlain(parse(textOf(file), { merge: true, logLevel: 'error' }))
  } catch (error) {
    throw unreadableError(file, errorText(error), error)
  }
}

function textOf (file: string) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadableError(file, errorText(error), error)
  }
}

async function runFile (file: string, { env, patienceMs = PATIENCE_MS }: How): Promise<Ecosystem> {
  const { answer, stderr, isLate } = await ofProcess(file, env, patienceMs)
  if (answer === null)
    throw unreadableError(file,
      isLate ? `nothing within ${durationText(patienceMs)}` : lastLine(stderr) ?? 'it ended the process')
  if ('reason' in answer) throw unreadableError(file, answer.reason)
  return answer
}

type State = { answer: Ecosystem | { reason: string } | null, stderr: string, isLate: boolean }
async function ofProcess (file: string, env: Record<string, string | undefined>, patienceMs: number): Promise<State> {
  const child = fork(LOADER, [file], { cwd: path.dirname(file), env: withoutOwnVariables(env), execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const state: State = { answer: null, stderr: '', isLate: false }
  const timer = setTimeout(() => {
    state.isLate = true
    child.kill('SIGKILL')
  }, patienceMs)
  child.once('message', (message) => {
    state.answer = toAnswer(message)
    // A timer that the file has started is not waited for.
    child.kill('SIGKILL')
  })
  child.stderr?.setEncoding('utf8').on('data', (part) => {
    state.stderr = (state.stderr + part).slice(-MAX_STDERR)
  })
  // `close` may come late: a program that the file has started can hold stderr.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  clearTimeout(timer)
  child.stderr?.destroy()
  return state
}

function toAnswer (message: unknown): State['answer'] {
  if (!isObject(message)) return null
  const { reason, value, dropped } = message
  return typeof reason === 'string' ? { reason } : { value, dropped: Array.isArray(dropped) ? dropped.map(String) : [] }
}

/** @returns the line of a stack that says what went wrong */
function lastLine (output: string): string | undefined {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1)
}

function unreadableError (file: string, reason: string, cause?: unknown): DeckError {
  const [line] = reason.split('\n')
  return new DeckError('invalid-config', `${file}: expected a file of PM2 that loads, received: ${oneLine(line)}`, {
    cause
  })
}
