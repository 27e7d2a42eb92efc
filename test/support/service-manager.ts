import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../server/errors.ts'
import { loadNotifyCalls } from '../../server/programs/notify-calls.ts'
import { fstatSocket } from '../../workers/socket-file.ts'
import { tempFolder } from './folder.ts'
import { present } from './present.ts'
import { until } from './until.ts'
import type { Launch, TestOwner } from './deck.ts'

/** A service manager for tests: it opens sockets and passes them on, and hears what it is told. */

const koffi = loadKoffi()
/** Why tests that need the native calls are skipped; false where they are not. */
export const withoutNativeCalls = koffi ? false : 'the optional package koffi is not installed'

/** Keeper and master do not find the package. */
export const WITHOUT_KOFFI: Launch = Object.freeze({
  execArgv: ['--require', fileURLToPath(new URL('hides-koffi.cjs', import.meta.url))]
})

/** Keeper and master find themselves in the control group of shop.service. */
export const BELOW_SYSTEMD: Launch = Object.freeze({
  execArgv: ['--require', fileURLToPath(new URL('below-systemd.cjs', import.meta.url))]
})

const [AF_UNIX, AF_INET, SOCK_DGRAM, SOCK_CLOEXEC, SOCK_NONBLOCK] = [1, 2, 2, 0o2000000, 0o4000]
const F_DUPFD_CLOEXEC = 1030
const BACKLOG = 511
const LOOK_MS = 2
const PATIENCE_MS = 90_000

const libc = koffi && (() => {
  const all = koffi.load(null)
  return { socket: all.func('int socket(int domain, int type, int protocol)'),
    bind: all.func('int bind(int fd, const void *address, unsigned int length)'),
    listen: all.func('int listen(int fd, int backlog)'),
    recv: all.func('long recv(int fd, _Out_ uint8_t *data, size_t size, int flags)'),
    close: all.func('int close(int fd)'), fcntl: all.func('int fcntl(int fd, int command, ...)') }
})()

type ServiceSocket = { fd: number, port: number, path?: string, isOpen: () => boolean, close: () => void }

/** A socket that listens, and that nobody accepts from yet. */
export function openSocket (t: TestOwner,
  { host = '127.0.0.1', port = 0, path }: { host?: string, port?: number, path?: string } = {}): ServiceSocket
{
  const { _createServerHandle: create } = net
  const handle = path ? create(path, -1, -1) : create(host, port, host.includes(':') ? 6 : 4)
  if (typeof handle === 'number' || libc.listen(handle.fd, BACKLOG) !== 0)
    throw new Error(`cannot listen on ${path ?? `${host}:${port}`}`)
  const bound = { port: 0 }
  handle.getsockname?.(bound)
  t.after(() => handle.close())
  return { fd: handle.fd, port: bound.port, path, isOpen: () => handle.fd >= 0, close: () => handle.close() }
}

/** One that no connection can be accepted from. */
export function openDatagramSocket (t: TestOwner) {
  const fd = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  t.after(() => libc.close(fd))
  return { fd }
}

/** How a process is started that is passed these sockets: LISTEN_PID is known only once it is there. */
export function passing (sockets: { fd: number }[], names: string[]): Launch {
  return { through: ['/bin/sh', '-c', 'export LISTEN_PID=$$; exec "$@"', 'sh'],
    descriptors: sockets.map(({ fd }) => fd),
    env: { LISTEN_FDS: String(sockets.length), LISTEN_FDNAMES: names.join(':') } }
}

let opened = 0

/**
 * The receiver of sd_notify(3). Node has no datagram sockets for Unix paths, so this one is looked at every few
 * milliseconds.
 */
export function openNotifySocket (t: TestOwner, { isAbstract = false }: { isAbstract?: boolean } = {}) {
  const name = isAbstract ? `@clusterdeck-test-${process.pid}-${++opened}` : path.join(tempFolder(), 'notify')
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
  const address = Buffer.concat([Buffer.from([AF_UNIX, 0]),
    Buffer.from(isAbstract ? `\0${name.slice(1)}` : `${name}\0`)])
  if (libc.bind(fd, address, address.length) !== 0) throw new Error(`cannot bind ${name}`)
  const buffer = Buffer.alloc(4096)
  const messages: { at: number, lines: string[] }[] = []
  const watchers: Set<() => void> = new Set()
  const timer = setInterval(look, LOOK_MS)
  t.after(() => {
    clearInterval(timer)
    libc.close(fd)
    if (!isAbstract) rmSync(name, { force: true })
  })

  return {
    /** for NOTIFY_SOCKET */
    name,
    messages,

    /** The variables among the messages that are of these names, in order. */
    told: (...names: string[]): string[] =>
      messages.flatMap(({ lines }) => lines.filter((line) => names.includes(line.split('=')[0]))),

    /** @returns when each of the messages with it came, ms of the monotonic clock */
    times: (line: string): number[] => messages.filter(({ lines }) => lines.includes(line)).map(({ at }) => at),

    /** Looks at once: what was sent until now is among the messages. */
    look,

    /** `times`: waits until it has been told that often */
    async until (line: string, times: number = 1) {
      const isSo = () => messages.flatMap(({ lines }) => lines).filter((each) => each === line).length >= times
      if (isSo()) return
      await new Promise((resolve, reject) => {
        const late = setTimeout(
          () => reject(new Error(`waited ${PATIENCE_MS} ms for ${line}; told: ${JSON.stringify(messages)}`)),
          PATIENCE_MS
        )
        const watch = () => {
          if (!isSo()) return
          watchers.delete(watch)
          clearTimeout(late)
          resolve(undefined)
        }
        watchers.add(watch)
      })
    }
  }

  function look () {
    for (let size = libc.recv(fd, buffer, buffer.length, 0); size > 0; size = libc.recv(fd, buffer, buffer.length, 0)) {
      messages.push({ at: performance.now(), lines: buffer.toString('utf8', 0, Number(size)).split('\n') })
    }
    for (const watch of [...watchers]) watch()
  }
}

type Stored = { name: string, fd: number }

/**
 * What systemd does with FDSTORE, sd_pid_notify_with_fds(3): it keeps what is sent, each socket once, and passes it to
 * the next start behind the sockets of its socket units.
 */
export function openSocketStore (t: TestOwner) {
  const calls = present(loadNotifyCalls())
  const place = path.join(tempFolder(), 'notify')
  const socket = Number(calls.open(place).fd)
  const kept: Stored[] = []
  const sent: string[] = []
  const timer = setInterval(look, LOOK_MS)
  t.after(() => {
    clearInterval(timer)
    forget(() => true)
    calls.close(socket)
  })

  return {
    /** for NOTIFY_SOCKET */
    name: place,
    kept,
    /** The names of those that were sent, each time. */
    sent,

    /** Puts a socket there that nobody has sent. */
    put (name: string, { fd }: { fd: number }) {
      kept.push({ name, fd: libc.fcntl(fd, F_DUPFD_CLOEXEC, 'int', 0) })
    },

    /** How the next process is started, with all that is kept. */
    launch (): Launch {
      look()
      return passing(kept, kept.map(({ name }) => name))
    },

    /** Waits until so many are kept. */
    async untilKept (count: number) {
      await until(() => {
        look()
        return kept.length === count
      }, () => `waited for ${count} sockets in the store, which has ${JSON.stringify(kept)}`)
    }
  }

  function look () {
    const fds: number[] = []
    for (let said = calls.take(socket, (fd) => fds.push(fd)); said; said = calls.take(socket, (fd) => fds.push(fd)))
      hear(said.text.split('\n'), fds.splice(0))
  }

  function hear (lines: string[], fds: number[]) {
    // A name that is not valid counts for none.
    const name = lines.map((line) => /^FDNAME=([^:\x00-\x1f\x7f]{1,255})$/.exec(line)?.[1]).find(Boolean) ?? 'stored'
    if (lines.includes('FDSTOREREMOVE=1')) forget((one) => one.name === name)
    if (lines.includes('FDSTORE=1')) sent.push(name)
    for (const fd of fds) {
      const isNew = lines.includes('FDSTORE=1') && !kept.some((one) => inodeOf(one.fd) === inodeOf(fd))
      if (isNew) kept.push({ name, fd })
      else libc.close(fd)
    }
  }

  function forget (isIt: (one: Stored) => boolean) {
    for (const one of kept.filter(isIt)) {
      kept.splice(kept.indexOf(one), 1)
      libc.close(one.fd)
    }
  }
}

function inodeOf (fd: number) {
  return fstatSocket(fd).ino
}

function loadKoffi () {
  // No binary for this machine.
  return attempt(() => createRequire(import.meta.url)('koffi'))
}
