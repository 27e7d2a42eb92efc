import { spawn } from 'node:child_process'
import { chmodSync, closeSync, linkSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import net from 'node:net'
import { constants } from 'node:os'
import path from 'node:path'
import { getSystemErrorName } from 'node:util'
import { attempt, toError } from '../errors.ts'
import { loadPosix, type Posix } from '../system/posix.ts'
import { lookAt } from './socket-names.ts'
import { adoptSocket, hiddenName, isJustMade, makeStage, openFolder, openSocket, removeName,
  stagePrefix } from './unix-path.ts'
import { scriptPath } from '../system/built.ts'
import type { SocketQuery } from '../../workers/protocol.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Folder, Stage, UnixPath } from './unix-path.ts'

export type Staged = { handle: SocketHandle, path: UnixPath, errno?: undefined }
/** `errno`: 0: only a path that is free can be bound here */
type NotStaged = { handle?: undefined, errno: number }

const BINDER = scriptPath('unix-binder.js')
const BIND_WITHIN_MS = 10_000
const CONNECT_WITHIN_MS = 2000
const { EADDRINUSE, EIO, ETIMEDOUT } = constants.errno

/** Ways to get a process that may change its root: as root, or as that of a user namespace. */
const WAYS = [[], ['unshare', '--map-root-user']]
/** Why they fail here, in the same order. */
const refusals: string[] = []

/**
 * @returns why a path that has a socket cannot get another one, so that the copies of a rollout share it with the old
 * ones; null: nothing is known against it
 */
export function whyNotStaged (): string | null {
  return refusals.length < WAYS.length ? null : `takes the rights of root, or a user namespace (${refusals.join('; ')})`
}

/** `query`: of a Unix socket. Returns whether it can be bound although its path has a socket, as far as is known. */
export function canStage (query: SocketQuery): boolean {
  return whyNotStaged() === null || !needsRoot(askedOf(query))
}

/**
 * Binds a Unix socket that knows itself by the path that the program has asked for, and is elsewhere until that path is
 * to lead to it. Where that is forbidden, it is bound at its path, if that is free. Another process does it, as a
 * thread has no root and no folder of its own.
 * @param how `isFirst`: no socket of this app has the path
 */
export async function stageUnixPath (query: SocketQuery,
  { isFirst }: { isFirst: boolean }): Promise<Staged | NotStaged>
{
  const file = String(query.address)
  const folder = openFolder(file)
  if (typeof folder === 'number') return { errno: folder }
  const undo: (() => void)[] = [folder.close]
  try {
    if (isFirst) await makeWay(folder, file)
    const fd = mustBeSet((loadPosix() as Posix).unixSocket())
    undo.push(() => closeSync(fd))
    const stage = await bindInStage(query, { fd, folder, file, undo })
    if (stage === null && !isFirst) throw withErrno(0)
    const own = folder.at(path.basename(file))
    if (stage === null) await bindHere(query, fd)
    const socket = openSocket(stage?.hidden ?? own, isJustMade)
    undo.push(socket.close)
    // The mode is set before anybody listens there: the umask of the master is not the app's.
    if (query.mode !== undefined) chmodSync(socket.place, query.mode & 0o777)
    if (stage === null) linkSync(own, folder.at(hiddenName(file)))
    const handle = net._createServerHandle(null, null, null, fd, 0)
    if (typeof handle === 'number') throw withErrno(handle)
    return { handle, path: adoptSocket({ file, folder, socket, stage }) }
  } catch (error) {
    for (const each of undo.reverse()) each()
    return { errno: toError(error).errno ?? -EADDRINUSE }
  }
}

/** Null: it is forbidden */
async function bindInStage (query: SocketQuery,
  { fd, folder, file, undo }: { fd: number, folder: Folder, file: string, undo: (() => void)[] }): Promise<Stage | null>
{
  if (!canStage(query)) return null
  const asked = askedOf(query)
  const stage = makeStage(folder, file)
  undo.push(() => {
    attempt(() => unlinkSync(stage.hidden))
    stage.remove()
    stage.close()
  })
  for (const [index, way] of WAYS.entries()) {
    if (refusals[index] !== undefined && needsRoot(asked)) continue
    const { refused } = await runBinder(way, [fd, stage.fd], [asked, stage.name, String(needsRoot(asked))])
    if (refused === undefined) return stage
    refusals[index] = refused
  }
  undo.pop()?.()
  return null
}

async function bindHere (query: SocketQuery, fd: number) {
  const asked = askedOf(query)
  const { refused } = await runBinder([], [fd, 'ignore'], [path.isAbsolute(asked) ? asked : String(query.address)])
  if (refused !== undefined) throw withErrno(-EIO)
}

/** Tells whether it may lead out of the folder that a process is in */
function needsRoot (file: string): boolean {
  return path.isAbsolute(file) || file.split('/').includes('..')
}

function askedOf ({ address, asked }: SocketQuery) {
  return asked ?? String(address)
}

/** Returns `refused`: why it may not @throws {NodeJS.ErrnoException} what bind(2) has failed with */
async function runBinder (way: string[], descriptors: [number, number | 'ignore'],
  args: string[]): Promise<{ refused?: string }>
{
  const [command, ...rest] = [...way, process.execPath, BINDER, ...args]
  const child = spawn(command, rest, { env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors], timeout: BIND_WITHIN_MS, killSignal: 'SIGKILL' })
  const said: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (text) => {
      said[name] += text
    })
  const ended = await new Promise<{ error?: NodeJS.ErrnoException, signal?: NodeJS.Signals | null }>((resolve) => {
    child.once('error', (error) => resolve({ error }))
    child.once('close', (_, signal) => resolve({ signal }))
  })
  // It is not there.
  if (ended.error && way.length > 0 && ended.error.code === 'ENOENT') return { refused: ended.error.message }
  if (ended.error) throw ended.error
  if (ended.signal) throw withErrno(-ETIMEDOUT)
  if (said.stdout === '') return { refused: said.stderr.trim().split('\n')[0] }
  const { errno = 0, refused } = JSON.parse(said.stdout)
  if (errno !== 0) throw withErrno(errno)
  return refused === undefined ? {} : { refused: `chroot: ${getSystemErrorName(refused)}` }
}

/**
 * What was left behind by processes that were killed goes.
 * @throws {NodeJS.ErrnoException} EADDRINUSE: something else is there
 */
async function makeWay (folder: Folder, file: string) {
  for (const name of [path.basename(file), hiddenName(file)]) {
    const there = lookAt(folder.at(name))
    if (!there) continue
    if (!there.isSocket() || await isServed(folder.at(name))) throw withErrno(-EADDRINUSE)
    removeName(folder.at(name), there)
  }
  attempt(() => {
    for (const stage of readdirSync(folder.at('.')).filter((name) => name.startsWith(stagePrefix(file)))) {
      attempt(() => unlinkSync(folder.at(path.join(stage, stage))))
      attempt(() => rmdirSync(folder.at(stage)))
    }
  })
}

/** `file`: of a socket. Returns whether somebody listens there; only connect(2) tells. */
function isServed (file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (is: boolean) => {
      connection.destroy()
      resolve(is)
    }
    const connection = net.connect({ path: file, timeout: CONNECT_WITHIN_MS }, () => answer(true))
    connection.once('timeout', () => answer(true))
    connection.once('error', ({ code }: NodeJS.ErrnoException) => answer(code !== 'ECONNREFUSED'))
  })
}

/** `result`: a descriptor, or an error number below 0 */
function mustBeSet (result: number) {
  if (result < 0) throw withErrno(result)
  return result
}

function withErrno (errno: number) {
  return Object.assign(new Error(errno === 0 ? 'it is forbidden' : getSystemErrorName(errno)), { errno })
}
