import { readFileSync } from 'node:fs'
import net from 'node:net'
import { attempt } from '../errors.ts'
import { placeText } from '../system/place-text.ts'
import { fstatSocket } from '../../workers/socket-file.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/**
 * A listening socket that a service manager has opened before us, sd_listen_fds(3). Its other copies are not ours:
 * it is never unlinked, and closed here only when this process ends.
 * `fd`: its number in the process that was started; `name`: of LISTEN_FDNAMES; `path`: of a Unix socket, null if it
 * cannot be known
 */
export type InheritedSocket = { fd: number, name: string, host?: string, port?: number, path?: string | null }

/** Under this name, and its descriptor's number, a keeper holds each of them. */
const INHERITED_PREFIX = 'inherited '
/** Under this one those that an earlier start has stored there, until it is known whose each of them is. */
const RETURNED_PREFIX = 'returned '
/** The names of these begin so; systemd itself has another one for what was stored without a name. */
export const STORED_PREFIX = 'clusterdeck-'
const STORED_WITHOUT_NAME = 'stored'
/** The name of the one that is meant for the admin port. */
export const ADMIN_NAME = 'admin'

const FIRST_FD = 3
/** What systemd writes where a descriptor has no name. */
const NO_NAME = 'unknown'
const VARIABLES = ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']

/**
 * Takes what was passed to this very process, once. The variables are removed: a child would take them for its own.
 * Imports no package, since the keeper runs it.
 * @returns by the name under which a keeper holds them
 */
export function takeInheritedSockets ({ env = process.env, pid = process.pid, say = (line) => {
  process.stderr.write(`clusterdeck: ${line}\n`)
} }: {
  env?: Record<string, string | undefined>,
  pid?: number,
  /** why one of them is not used */
  say?: (line: string) => void
} = {}): Map<string, { handle: SocketHandle, data: InheritedSocket }> {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES } = env
  for (const name of VARIABLES) delete env[name]
  const taken: ReturnType<typeof takeInheritedSockets> = new Map()
  // Another process of the same service may have left its own in the environment.
  if (LISTEN_PID === undefined || Number(LISTEN_PID) !== pid) return taken
  const count = Number(LISTEN_FDS)
  if (!Number.isInteger(count) || count < 0)
    say(`LISTEN_FDS: expected a number of descriptors, received ${JSON.stringify(LISTEN_FDS)}`)
  const names = (LISTEN_FDNAMES ?? '').split(':')
  for (let fd = FIRST_FD; fd < FIRST_FD + count; fd++) {
    const name = names[fd - FIRST_FD] || NO_NAME
    const opened = openSocket(fd)
    if (opened.handle)
      taken.set(`${isStoredName(name) ? RETURNED_PREFIX : INHERITED_PREFIX}${fd}`, { handle: opened.handle,
        data: { fd, name, ...opened.place } })
    else say(
        `the inherited descriptor ${fd} ("${name}") is not used: expected a listening TCP or Unix stream socket, received ${opened.reason}`
      )
    if (opened.reason === NOTHING) break
  }
  return taken
}

/** `held`: all sockets of a keeper. Returns those of the service manager. */
export function listInherited (
  held: Map<string, { handle: SocketHandle, data?: object }>
): { handle: SocketHandle, data: InheritedSocket }[] {
  return [...held].flatMap(([key, { handle, data }]) =>
    key.startsWith(INHERITED_PREFIX) && isInherited(data) ? [{ handle, data }] : []
  )
}

/** `held`: likewise. Returns those that an earlier start has stored, with the keys of the keeper. */
export function listReturned (
  held: Map<string, { handle: SocketHandle, data?: object }>
): { held: string, handle: SocketHandle, data: InheritedSocket }[] {
  return [...held].flatMap(([key, { handle, data }]) =>
    key.startsWith(RETURNED_PREFIX) && isInherited(data) ? [{ held: key, handle, data }] : []
  )
}

/** `name`: of LISTEN_FDNAMES. Tells whether such a socket was stored, and by no socket unit. */
export function isStoredName (name: unknown): name is string {
  return name === STORED_WITHOUT_NAME || String(name).startsWith(STORED_PREFIX)
}

function isInherited (data: object | undefined): data is InheritedSocket {
  return data !== undefined && 'fd' in data && 'name' in data
}

/** @returns for people */
export function describeInherited ({ fd, name, host, port, path }: InheritedSocket): string {
  const address = port !== undefined
    ? placeText({ host, port })
    : path ?? `a Unix socket of unknown path, descriptor ${fd}`
  return name === NO_NAME ? address : `${address} ("${name}")`
}

const NOTHING = 'nothing'

type Place = Pick<InheritedSocket, 'host' | 'port' | 'path'>

function openSocket (
  fd: number
): { handle: SocketHandle, place: Place, reason?: undefined } | { handle?: undefined, reason: string } {
  // EBADF: fewer have been passed than were promised.
  const stat = attempt(() => fstatSocket(fd))
  if (!stat) return { reason: NOTHING }
  // A pipe opens as a Unix socket would.
  if (!stat.isSocket()) return { reason: 'something else' }
  const handle = net._createServerHandle(null, null, null, fd)
  if (typeof handle === 'number') return { reason: 'another kind of socket, as a datagram one is' }
  const place = placeOfSocket(handle)
  if (place !== null) return { handle, place }
  handle.close()
  return { reason: 'a connection (Accept=yes in its socket unit)' }
}

/** Where it is bound; null: it is a connection. */
export function placeOfSocket (handle: SocketHandle): Place | null {
  return handle.getsockname ? tcpPlace(handle) : unixPlace(fstatSocket(handle.fd).ino)
}

/** Null: it is a connection */
function tcpPlace (handle: SocketHandle): Place | null {
  if (handle.getpeername?.({}) === 0) return null
  const bound = { address: '', port: 0 }
  handle.getsockname?.(bound)
  return { host: bound.address, port: bound.port }
}

/** `SS_CONNECTED` of linux/net.h, in the column St: one that is bound may not listen yet. */
const CONNECTED = 3
const STATE_COLUMN = 5

/**
 * Node does not tell the path of a Unix socket, proc_pid_net(5) does. One from another network namespace is not in
 * there. Returns null: it is a connection.
 */
function unixPlace (inode: number): Place | null {
  // A system without /proc has no such file.
  const rows = attempt(() => readFileSync('/proc/net/unix', 'utf8'), '').split('\n')
  const row = rows.map((line) => /^((?:\S+ +){6})(\d+)(?: (.*))?$/.exec(line)).find((match) =>
    Number(match?.[2]) === inode
  )
  if (!row) return { path: null }
  if (Number.parseInt(row[1].trim().split(/ +/)[STATE_COLUMN], 16) === CONNECTED) return null
  return { path: row[3] ?? null }
}
