import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, closeSync, constants, existsSync, fstatSync, linkSync, mkdtempSync, openSync, renameSync,
  rmdirSync, statSync, unlinkSync } from 'node:fs'
import { constants as system } from 'node:os'
import path from 'node:path'
import { attempt, toError } from '../errors.ts'
import { fstatSocket, lstatSocket, type SocketStat } from '../../workers/socket-file.ts'
import { keepName } from './name-keeping.ts'
import { isAt, lookAt, nameAgain } from './socket-names.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/**
 * The path of a Unix socket that many processes serve. It stays as long as the socket does, whoever of them removes it.
 * Folder and socket are descriptors, as a path could lead elsewhere a moment later.
 */
export type UnixPath = ReturnType<typeof adoptSocket>
/** by which the next master knows the socket; `stage`: the name of a folder of its own */
export type Memory = { file: string, dev: number, ino: number, stage?: string }

/** It opens a place, whether that may be read or not. Only Linux has it: open(2). */
const O_PATH = process.platform === 'linux' ? 0o10000000 : 0
const FOLDER = O_PATH | constants.O_DIRECTORY
const OWN_FOLDER = FOLDER | constants.O_NOFOLLOW
const SOCKET = O_PATH | constants.O_NOFOLLOW
const { EACCES, EADDRINUSE, ENOENT } = Object.fromEntries(
  Object.entries(system.errno).map(([name, number]) => [name, -number])
)
/** Where its own descriptors are paths, a link to the one place cannot be changed for another. */
const DESCRIPTORS = existsSync('/proc/self/fd') ? '/proc/self/fd' : null

/**
 * libuv removes the path of a Unix socket when the process that bound it closes it or ends, even while other processes
 * still serve there. So it is bound to another name, and linked to its own. A second, hidden name stays, as an app may
 * remove the path when it ends, or when it starts again.
 * @param createHandle a handle that is bound there, or an error number below 0
 */
export function bindUnixPath (file: string, mode: number | undefined,
  createHandle: (address: string) => SocketHandle | number
): { handle: SocketHandle, path: UnixPath, errno?: undefined } | { handle?: undefined, errno: number } {
  const folder = openFolder(file)
  if (typeof folder === 'number') return { errno: folder }
  const [name, hidden, bound] = [path.basename(file), hiddenName(file), `.${randomBytes(4).toString('hex')}`]
  let handle: SocketHandle | number | undefined
  let socket: OpenSocket | null = null
  try {
    for (const left of [name, hidden]) if (!makeWay(folder, left)) return refuseBind(EADDRINUSE)
    handle = createHandle(folder.at(bound))
    if (typeof handle === 'number') return refuseBind(handle)
    socket = openSocket(folder.at(bound), isJustMade)
    // The mode is set before anybody listens there: the umask of the master is not the app's.
    if (mode !== undefined) chmodSync(socket.place, mode & 0o777)
    for (const other of [hidden, name]) linkSync(folder.at(bound), folder.at(other))
    unlinkSync(folder.at(bound))
    const adopted = adoptSocket({ file, folder, socket })
    adopted.restore()
    return { handle, path: adopted }
  } catch (error) {
    const { code, errno } = toError(error)
    if (socket) removeName(folder.at(hidden), socket)
    return refuseBind(code === 'EEXIST' || errno === undefined ? EADDRINUSE : errno)
  }

  function refuseBind (errno: number) {
    // This removes the name that it was bound to, too.
    if (typeof handle === 'object') handle.close()
    socket?.close()
    if (typeof folder === 'object') folder.close()
    return { errno }
  }
}

/** `memory`: of another master. Returns null: neither of its names leads to it. */
export function findUnixPath ({ file, dev, ino, stage: stageName }: Memory): UnixPath | null {
  const folder = openFolder(file)
  if (typeof folder === 'number') return null
  const stage = stageName === undefined ? null : openStage(folder, stageName)
  for (const name of [stage?.hidden ?? folder.at(hiddenName(file)), folder.at(path.basename(file))]) {
    // The app may have given it to another user.
    // ENOENT, or something else is there.
    const socket = attempt(() => openSocket(name, (stat) => stat.dev === dev && stat.ino === ino))
    if (socket) return adoptSocket({ file, folder, socket, stage })
  }
  stage?.remove()
  folder.close()
  return null
}

/** `stage`: has its hidden name; null: that is beside its own */
export function adoptSocket (
  { file, folder, socket: { dev, ino, place, close }, stage = null }: { file: string, folder: Folder,
    socket: OpenSocket, stage?: Stage | null }
) {
  const socket = { dev, ino }
  const name = folder.at(path.basename(file))
  const hidden = stage?.hidden ?? folder.at(hiddenName(file))
  let letGo: (() => void) | null = null
  const keep = () => {
    letGo ??= keepName({ ...socket, name, hidden, place })
  }

  return {
    memory: { file, dev, ino, ...(stage && { stage: stage.name }) },

    /** It leads there whatever the other one does. */
    hidden,

    /** Tells whether its path leads to it */
    isShown: (): boolean => isAt(name, socket),

    /**
     * Has the path lead to the socket from now on, which nobody has to make way for but `old`. There is no moment in
     * which it leads nowhere.
     * @param old whose permissions it gets, as its app may have changed them by the path
     * @returns 0, or an error number
     */
    show (old: { dev: number, ino: number } | null): number {
      const there = lookAt(name)
      const isThere = isAt(name, socket)
      if (there && !isThere && !(old && isAt(name, old))) return EADDRINUSE
      try {
        if (!there) linkSync(hidden, name)
        else if (!isThere) replace(there)
      } catch (error) {
        return toError(error).errno ?? EADDRINUSE
      }
      keep()
      return 0
    },

    /** Another socket has its path now. */
    hide () {
      letGo?.()
      letGo = null
    },

    /**
     * Has the path lead to the socket again. Returns 0, or an error number: ENOENT: both of its names are gone, or its
     * folder is another one by now.
     */
    restore (): number {
      if (!folder.isAt(path.dirname(file))) return ENOENT
      nameAgain({ ...socket, name, hidden })
      // Nobody is asked at a path that another program may fill again and again.
      if (!isAt(name, socket) && (stage ? lookAt(name) : !makeWay(folder, path.basename(file)))) return EADDRINUSE
      if (isAt(name, socket)) attempt(() => linkSync(name, hidden))
      nameAgain({ ...socket, name, hidden })
      keep()
      return isAt(name, socket) ? 0 : ENOENT
    },

    /** Its names go, whatever else is there by now does not. */
    remove () {
      // First the one by which the other would come again.
      for (const each of [hidden, name]) removeName(each, socket)
      stage?.remove()
      this.leave()
    },

    /** The program that it is of goes on as before. */
    giveBack () {
      this.restore()
      removeName(hidden, socket)
      this.leave()
    },

    /** Another master has it. */
    leave () {
      this.hide()
      close()
      stage?.close()
      folder.close()
    }
  }

  function replace (there: SocketStat) {
    attempt(() => chownSync(place, there.uid, there.gid))
    attempt(() => chmodSync(place, there.mode & 0o777))
    linkSync(hidden, `${hidden}-next`)
    renameSync(`${hidden}-next`, name)
  }
}

export function hiddenName (file: string) {
  return `.${path.basename(file)}.clusterdeck`
}

export type Folder = Exclude<ReturnType<typeof openFolder>, number>

/** @returns an error number where it cannot be opened, the one that libuv has for a path without a folder */
export function openFolder (file: string) {
  try {
    return openPlace(path.dirname(file), FOLDER)
  } catch (error) {
    const { errno = EACCES } = toError(error)
    return errno === ENOENT ? EACCES : errno
  }
}

function openPlace (place: string, flags: number) {
  const fd = openSync(place, flags)
  const { dev, ino, uid } = fstatSync(fd)
  return { fd, isOurs: uid === process.geteuid?.(),
    at: (name: string) => path.join(DESCRIPTORS ? `${DESCRIPTORS}/${fd}` : place, name), isAt (where: string) {
    const there = statSync(where, { throwIfNoEntry: false })
    return there?.ino === ino && there.dev === dev
  }, close: () => closeSync(fd) }
}

/** a folder that nobody else can enter, beside the path of a socket, where that is before its path leads to it */
export type Stage = NonNullable<ReturnType<typeof openStage>>

/** @throws {NodeJS.ErrnoException} */
export function makeStage (folder: Folder, file: string) {
  const name = path.basename(mkdtempSync(folder.at(stagePrefix(file))))
  const stage = openStage(folder, name)
  if (!stage) throw Object.assign(new Error('somebody else has put another folder in its place'), { errno: EACCES })
  return stage
}

export function stagePrefix (file: string) {
  return `${hiddenName(file)}-`
}

function openStage (folder: Folder, name: string) {
  try {
    const { fd, at, isOurs, close } = openPlace(folder.at(name), OWN_FOLDER)
    const remove = () => attempt(() => rmdirSync(folder.at(name)))
    if (isOurs) return { fd, name, hidden: at(name), remove, close }
    close()
  } catch {
    // ENOENT: it has been removed; ENOTDIR: something else is there.
  }
  return null
}

type OpenSocket = ReturnType<typeof openSocket>

/** Opens a socket. No other file gets its number as long as it is open. */
export function openSocket (file: string, isIt: (stat: SocketStat) => boolean) {
  const fd = DESCRIPTORS ? openSync(file, SOCKET) : null
  const stat = fd === null ? lstatSocket(file) : fstatSocket(fd)
  if (!stat) throw Object.assign(new Error('nothing is there'), { errno: ENOENT })
  const { dev, ino } = stat
  const close = () => {
    if (fd !== null) closeSync(fd)
  }
  if (stat.isSocket() && isIt(stat)) return { dev, ino, place: fd === null ? file : `${DESCRIPTORS}/${fd}`, close }
  close()
  throw Object.assign(new Error('something else is there'), { errno: EACCES })
}

/** Not what somebody has put in its place since. */
export function isJustMade ({ uid, nlink }: SocketStat) {
  return uid === process.geteuid?.() && nlink === 1
}

export function removeName (file: string, socket: { dev: number, ino: number }) {
  if (isAt(file, socket)) attempt(() => unlinkSync(file))
}

/** Tells whether nothing is there any more: only what was left behind goes */
function makeWay (folder: Folder, name: string): boolean {
  const there = lookAt(folder.at(name))
  if (!there) return true
  if (!there.isSocket() || !isAbandoned(folder, name)) return false
  removeName(folder.at(name), there)
  return true
}

const PROBE = `require('net').connect(process.argv[1])
  .on('connect', () => process.exit(1))
  .on('error', ({ code }) => process.exit(code === 'ECONNREFUSED' ? 0 : 1))`
const PROBE_PATIENCE_MS = 2_000

/**
 * Whether a socket's path was left behind by processes that were killed: nobody removes it then, and only connect(2)
 * tells. Rare, and asked before anything serves, so a process is well spent on an answer that comes at once.
 */
function isAbandoned (folder: Folder, name: string) {
  // The process has the folder as its descriptor 3.
  const file = DESCRIPTORS ? `${DESCRIPTORS}/3/${name}` : folder.at(name)
  return spawnSync(process.execPath, ['-e', PROBE, file], { stdio: ['ignore', 'ignore', 'ignore', folder.fd],
    timeout: PROBE_PATIENCE_MS }).status === 0
}
