import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { SHARE_ENV, Worker } from 'node:worker_threads'
import { DeckError, errorText } from '../errors.ts'
import { isFile } from '../launch/packages.ts'
import { durationText } from '../lifecycle/duration.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { existingFolder } from '../system/working-folder.ts'
import { invalid } from './invalid.ts'
import { isObject } from './is-object.ts'
import { scriptPath } from '../system/built.ts'
import type { EventEmitter } from 'node:events'

const LOADER = scriptPath('file-loader.js')
const GUARD = scriptPath('loading-guard.js')
type Environment = Record<string, string | undefined>
type Place = { env: Environment, cwd: string }

const PATIENCE_MS = 10_000
/** The pids of processes that load a file: they must not be reaped as if they were left over. */
const loaders: Set<number | undefined> = new Set()
const DEFAULT_NAMES = ['clusterdeck.config.js', 'clusterdeck.config.mjs', 'clusterdeck.config.json']

export const isConfigLoader = (pid: number) => loaders.has(pid)

/**
 * Reads the config file that was named, or that of the working folder, unless somebody else could have put it there.
 * `isAgain`: this process has read it before, and it may have changed; `isGuest`: the process belongs to another
 * program, and must not be ended if the file never finishes; `apartWith`: the file runs in a process of its own, with
 * these variables and in `cwd`, which are those of another shell. Returns null if there is none.
 * @throws {DeckError} invalid-config
 */
export async function readConfigFile (named: string | undefined, cwd: string,
  { isAgain = false, isGuest = false, apartWith = null, patienceMs = PATIENCE_MS }: { isAgain?: boolean,
    isGuest?: boolean, apartWith?: Environment | null, patienceMs?: number } = {}
): Promise<{ file: string, values: Record<string, unknown> } | null> {
  const file = named === undefined
    ? DEFAULT_NAMES.map((name) => path.resolve(cwd, name)).find(isFile)
    : path.resolve(cwd, named)
  if (file === undefined) return null
  if (named === undefined) checkFound(file)
  if (!isFile(file)) throw invalid('config', 'a file', `${file}, which does not exist`)
  const values = await loadFile(file, { isAgain, isGuest, apart: apartWith && { env: apartWith, cwd }, patienceMs })
  if (!isObject(values)) {
    throw invalid(file, 'an object of options', describeType(values))
  }
  return { file, values }
}

/**
 * A file that was found and not named may be from anybody.
 * @throws {DeckError} invalid-config
 */
function checkFound (file: string) {
  const reason = whyPathDistrusted(file)
  if (reason === null) return
  const ways = 'correct that, or name the file by --config or CLUSTERDECK_CONFIG if you trust it'
  throw new DeckError('invalid-config',
    `config: expected ${file} to be a file that only root and its user can write, but ${reason}; ${ways}`)
}

async function loadFile (file: string,
  { isAgain, isGuest, apart, patienceMs }: { isAgain: boolean, isGuest: boolean, apart: Place | null,
    patienceMs: number }): Promise<unknown>
{
  try {
    if (file.endsWith('.json')) return parseFile(readFileSync(file, 'utf8'))
    if (apart) return await loadInProcess(file, apart, patienceMs)
    if (isAgain) return await loadInThread(file, patienceMs)
    const loading = import(pathToFileURL(file).href)
    return (await (isGuest ? loading : loadGuarded(loading, file, patienceMs))).default
  } catch (error) {
    // The file is code of the user: its message helps, its stack is not ours to show.
    const [reason] = errorText(error).split('\n')
    throw new DeckError('invalid-config', `${file}: expected a config file that loads, received: ${reason}`, {
      cause: error
    })
  }
}

function parseFile (text: string) {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    // Some messages of JSON.parse quote the text, which may be a secret.
    throw new Error(`no JSON${/ at position \d+/.exec(errorText(error))?.[0] ?? ''}`, { cause: error })
  }
}

/** Waits for a file that may wait or run for ever. If it runs, neither a signal nor a timer gets through. */
async function loadGuarded<T> (loading: Promise<T>, file: string, patienceMs: number): Promise<T> {
  const { env: { CLUSTERDECK_KEPT: keeper }, channel, ppid } = process
  const isKept = keeper === String(ppid) && channel && 'fd' in channel
  const workerData = { file, patienceMs, keeper: isKept ? { pid: ppid, fd: channel.fd } : null }
  const guard = new Worker(GUARD, { workerData, env: SHARE_ENV, execArgv: [] })
  try {
    return await Promise.race([loading, new Promise<never>((_resolve, reject) => {
      guard.once('message', () => reject(new Error(`nothing within ${durationText(patienceMs)}`)))
      // ENOMEM, EAGAIN: the file is loaded without a guard.
      guard.once('error', () => {})
    })])
  } finally {
    guard.removeAllListeners('message')
    await guard.terminate()
  }
}

/**
 * A process loads a module once and keeps it, with all that it imports; a thread begins with none. Changes that the
 * file makes to
 * `process.env` stay in the thread as well.
 */
async function loadInThread (file: string, patienceMs: number) {
  const thread = new Worker(LOADER, { workerData: pathToFileURL(file).href })
  try {
    return await loadedBy(thread, patienceMs)
  } finally {
    await thread.terminate()
  }
}

/** A thread has the working folder of its process. */
async function loadInProcess (file: string, { env, cwd }: Place, patienceMs: number) {
  const child = fork(LOADER, [pathToFileURL(file).href], {
    cwd: existingFolder(cwd),
    env,
    // Where the variables ask for an inspector, its port may be in use by the app.
    execArgv: [...process.execArgv, '--inspect-port=0'],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc']
  })
  loaders.add(child.pid)
  child.once('exit', () => loaders.delete(child.pid))
  // EPERM: it could not be killed. What it exports is known by then.
  child.on('error', () => {})
  try {
    return await loadedBy(child, patienceMs)
  } finally {
    child.kill('SIGKILL')
  }
}

/** @returns what the file exports */
async function loadedBy (loader: EventEmitter, patienceMs: number): Promise<unknown> {
  let timer
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing within ${durationText(patienceMs)}`)), patienceMs)
      loader.once('message', ({ values, reason }) => reason === undefined ? resolve(values) : reject(new Error(reason)))
      loader.once('error', reject)
      loader.once('exit', () => reject(new Error('it ended the process')))
    })
  } finally {
    clearTimeout(timer)
  }
}

function describeType (value: unknown) {
  if (value === null) return 'null'
  if (value === undefined) return 'no default export'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
