import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { endianness } from 'node:os'
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from 'node:timers'
import { lookAtTurnOfSecond } from './look-together.ts'
import type { Server } from 'node:net'
import type { SocketHandle } from './node-internals.d.ts'

// linux/eventpoll.h
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLLIN = 1
const EPOLLEXCLUSIVE = 1 << 28

/** libuv begins to wait for a socket in the first turn of its loop after listen(), or a little later. */
const MAX_TURNS = 100
/** The native calls are loaded once the worker serves, as loading takes longer than most requests. */
const LOAD_AFTER_MS = 50
// netinet/in.h, linux/tcp.h: struct tcp_info, where a listening socket has how many wait in its queue, and may.
const IPPROTO_TCP = 6
const TCP_INFO = 11
const [WAITING_AT, MAY_WAIT_AT, INFO_BYTES] = [24, 28, 32]

/** Connections that come closer together than this are a burst. */
const BURST_MS = 20
/**
 * After each of its first connections in a burst a worker pauses just long enough for every other one to be scheduled.
 */
const TURNS = 32
const TURN_MS = 0.4
const MAX_PAUSE_MS = 5
/** A client that a full queue rejects tries again after a second. */
const LONG_QUEUE = 1 / 2

/** of the C library; they return 0, or -1 */
export type Calls = { control: (epoll: number, operation: number, fd: number, event: Buffer) => number,
  option: (fd: number, level: number, name: number, value: Buffer, bytes: Buffer) => number }
export type EvenAccept = ReturnType<typeof createEvenAccept>

/**
 * Spreads the connections of shared sockets evenly over the workers that are idle. Each worker waits by itself; libuv
 * lets every one of them wake up for each connection, and the fastest wins. Waiting with EPOLLEXCLUSIVE one alone wakes
 * up, the first in the kernel's queue, and whoever waits anew after each connection is the last of it: epoll_ctl(2).
 * A worker that runs JavaScript does not wait, and is passed over; nor does one that has just accepted, before it has
 * read what that connection had to say.
 *
 * A wake-up that went to a worker which ends before it accepts is lost, so all wait anew then; that looks at the queue
 * too.
 */
export function createEvenAccept ({ onKnown, load = loadCalls }: {
  /** once it is known whether that can be done here */
  onKnown: (isEven: boolean) => void,
  /** null: where it cannot be had, everything is as libuv does it */
  load?: () => Calls | null
}) {
  /** how to wait anew for each handle */
  const waits: Map<SocketHandle, () => unknown> = new Map()
  let calls: Calls | null | undefined
  let isKnown = false
  let others = 0

  return {
    /** `handle`: a listening socket's, before Node listens on it */
    take (server: Server, handle: SocketHandle) {
      const { listen, close } = handle
      let looking: NodeJS.Immediate | undefined
      let loading: NodeJS.Timeout | undefined
      handle.listen = function (backlog) {
        handle.listen = listen
        const errno = listen.call(handle, backlog)
        if (!errno && calls === undefined) loading = setTimeout(lookForEpoll, LOAD_AFTER_MS, MAX_TURNS).unref()
        else if (!errno) lookForEpoll(MAX_TURNS)
        return errno
      }
      handle.close = function (callback) {
        handle.close = close
        clearTimeout(loading)
        clearImmediate(looking)
        waits.delete(handle)
        return close.call(handle, callback)
      }

      function lookForEpoll (turns: number) {
        looking = setImmediate(() => {
          if (!(handle.fd >= 0)) return
          if (calls === undefined) calls = load()
          const epoll = calls && findEpoll(handle.fd)
          if (calls && epoll !== null) takeTurns(server, handle, epoll, calls)
          else if (calls && turns > 0) lookForEpoll(turns - 1)
          else tellEven(false)
        })
      }
    },

    /** Loads the native calls before the first connections come, which would have to wait for that. */
    prepare () {
      if (calls === undefined) calls = load()
    },

    again: waitAgain
  }

  /**
   * Another worker may have been woken for a connection that it does not take.
   * @param now how many other workers wait in turn
   */
  function waitAgain (now: { others?: number } = {}) {
    others = now.others ?? others
    for (const wait of waits.values()) wait()
  }

  function tellEven (isEven: boolean) {
    if (isKnown) return
    isKnown = true
    onKnown(isEven)
    // No connection waits longer than this if a wake-up was lost.
    if (isEven) lookAtTurnOfSecond(() => waitAgain())
  }

  function takeTurns (server: Server, handle: SocketHandle, epoll: number, { control, option }: Calls) {
    const { fd, onconnection } = handle
    const shared = eventOf(fd, EPOLLIN)
    const alone = eventOf(fd, EPOLLIN | EPOLLEXCLUSIVE)
    let lastAt = 0
    /** The most connections that were open at once in this burst. */
    let most = 0
    let taken = 0
    if (!waitForTurn()) return tellEven(false)

    function waitForTurn (): boolean {
      control(epoll, EPOLL_CTL_DEL, fd, alone)
      if (control(epoll, EPOLL_CTL_ADD, fd, alone) === 0) return true
      // EINVAL: Linux before 4.5; ENOMEM. A worker that does not wait at all would be deaf.
      control(epoll, EPOLL_CTL_ADD, fd, shared)
      return false
    }

    handle.onconnection = function (error, client) {
      control(epoll, EPOLL_CTL_DEL, fd, alone)
      const pauseMs = isOneOfMany() ? Math.min(MAX_PAUSE_MS, Math.ceil(others * TURN_MS)) : 0
      if (pauseMs > 0) setTimeout(waitAtTheEnd, pauseMs).unref()
      // libuv reads from the new connection in the next turn at the soonest, and that may keep this worker busy.
      else setImmediate(setImmediate, waitAtTheEnd)
      return onconnection.call(this, error, client)
    }
    waits.set(handle, waitForTurn)
    tellEven(true)

    function waitAtTheEnd () {
      if (waits.has(handle)) waitForTurn()
    }

    /**
     * In a burst, others have been woken for what is in the queue too, and the one that is scheduled more often would
     * take more of it. That matters only where connections stay: otherwise there are soon no more at once than before.
     */
    function isOneOfMany () {
      const at = performance.now()
      const isBurst = at - lastAt < BURST_MS
      lastAt = at
      if (!isBurst) taken = 0
      if (isBurst && server._connections <= most) return false
      most = server._connections
      return isBurst && taken++ < TURNS && isQueueShort(fd, option)
    }
  }
}

/** False: it is long, or cannot be known, as that of a Unix socket */
function isQueueShort (fd: number, option: Calls['option']): boolean {
  const info = Buffer.alloc(INFO_BYTES)
  const bytes = Buffer.from(Uint32Array.of(INFO_BYTES).buffer)
  if (option(fd, IPPROTO_TCP, TCP_INFO, info, bytes) !== 0) return false
  const [waiting, most] = [WAITING_AT, MAY_WAIT_AT].map((at) =>
    endianness() === 'LE' ? info.readUInt32LE(at) : info.readUInt32BE(at)
  )
  return waiting < most * LONG_QUEUE
}

/** @returns a struct epoll_event with libuv's data, packed on x86-64 alone */
function eventOf (fd: number, events: number): Buffer {
  const words = process.arch === 'x64' ? [events, fd, 0] : [events, 0, ...(endianness() === 'LE' ? [fd, 0] : [0, fd])]
  const { buffer } = Uint32Array.from(words)
  return Buffer.from(buffer)
}

/** @returns the epoll that waits for it: proc_pid_fdinfo(5) */
function findEpoll (fd: number): number | null {
  const target = new RegExp(`^tfd:\\s+${fd}\\s`, 'm')
  try {
    const epoll = readdirSync('/proc/self/fdinfo').find((name) => target.test(readOr(`/proc/self/fdinfo/${name}`)))
    return epoll === undefined ? null : Number(epoll)
  } catch {
    // ENOENT: /proc is not mounted.
    return null
  }
}

function readOr (file: string) {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // ENOENT: a descriptor that was closed meanwhile.
    return ''
  }
}

/** Null: not Linux, or the optional package is absent */
function loadCalls (): Calls | null {
  if (process.platform !== 'linux') return null
  try {
    const libc = createRequire(import.meta.url)('koffi').load(null)
    return { control: libc.func('int epoll_ctl(int epoll, int operation, int fd, void *event)'),
      option: libc.func('int getsockopt(int fd, int level, int name, void *value, void *bytes)') }
  } catch {
    // No binary for this machine, or an app that may load none (--permission).
    return null
  }
}
