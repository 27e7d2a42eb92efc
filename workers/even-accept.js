import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { endianness } from 'node:os'
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from 'node:timers'
import { lookAtTurnOfSecond } from './look-together.js'

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
/** After each of its first connections in a burst a worker pauses just long enough for every other one to be scheduled. */
const TURNS = 32
const TURN_MS = 0.4
const MAX_PAUSE_MS = 5
/** A client that a full queue rejects tries again after a second. */
const LONG_QUEUE = 1 / 2

/**
 * @typedef {object} Calls  of the C library; they return 0, or -1
 * @property {(epoll: number, operation: number, fd: number, event: Buffer) => number} control
 * @property {(fd: number, level: number, name: number, value: Buffer, bytes: Buffer) => number} option
 */
/** @typedef {ReturnType<typeof createEvenAccept>} EvenAccept */
/** @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle */

/**
 * Spreads the connections of shared sockets evenly over the workers that are idle. Each worker waits by itself; libuv
 * lets every one of them wake up for each connection, and the fastest wins. Waiting with EPOLLEXCLUSIVE one alone wakes
 * up, the first in the kernel's queue, and whoever waits anew after each connection is the last of it: epoll_ctl(2).
 * A worker that runs JavaScript does not wait, and is passed over; nor does one that has just accepted, before it has
 * read what that connection had to say.
 *
 * A wake-up that went to a worker which ends before it accepts is lost, so all wait anew then; that looks at the queue too.
 * @param {object} parts
 * @param {(isEven: boolean) => void} parts.onKnown once it is known whether that can be done here
 * @param {() => Calls | null} [parts.load] null: where it cannot be had, everything is as libuv does it
 */
export function createEvenAccept ({ onKnown, load = loadCalls }) {
  /** @type {Map<SocketHandle, () => unknown>} how to wait anew for each handle */
  const waits = new Map()
  /** @type {Calls | null | undefined} */
  let calls
  let isKnown = false
  let others = 0

  return {
    /** @param {import('node:net').Server} server @param {SocketHandle} handle  a listening socket's, before Node listens on it */
    take (server, handle) {
      const { listen, close } = handle
      /** @type {NodeJS.Immediate | undefined} */
      let looking
      /** @type {NodeJS.Timeout | undefined} */
      let loading
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

      function lookForEpoll (/** @type {number} */ turns) {
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
    prepare () { if (calls === undefined) calls = load() },

    again: waitAgain
  }

  /**
   * Another worker may have been woken for a connection that it does not take.
   * @param {{ others?: number }} [now] how many other workers wait in turn
   */
  function waitAgain (now = {}) {
    others = now.others ?? others
    for (const wait of waits.values()) wait()
  }

  function tellEven (/** @type {boolean} */ isEven) {
    if (isKnown) return
    isKnown = true
    onKnown(isEven)
    // No connection waits longer than this if a wake-up was lost.
    if (isEven) lookAtTurnOfSecond(() => waitAgain())
  }

  /** @param {import('node:net').Server} server @param {SocketHandle} handle @param {number} epoll @param {Calls} calls */
  function takeTurns (server, handle, epoll, { control, option }) {
    const { fd, onconnection } = handle
    const shared = eventOf(fd, EPOLLIN)
    const alone = eventOf(fd, EPOLLIN | EPOLLEXCLUSIVE)
    let lastAt = 0
    /** The most connections that were open at once in this burst. */
    let most = 0
    let taken = 0
    if (!waitForTurn()) return tellEven(false)

    /** @returns {boolean} */
    function waitForTurn () {
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
     * In a burst, others have been woken for what is in the queue too, and the one that is scheduled more often would take
     * more of it. That matters only where connections stay: otherwise there are soon no more at once than before.
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

/** @param {number} fd @param {Calls['option']} option @returns {boolean} false: it is long, or cannot be known, as that of a Unix socket */
function isQueueShort (fd, option) {
  const info = Buffer.alloc(INFO_BYTES)
  const bytes = Buffer.from(Uint32Array.of(INFO_BYTES).buffer)
  if (option(fd, IPPROTO_TCP, TCP_INFO, info, bytes) !== 0) return false
  const [waiting, most] = [WAITING_AT, MAY_WAIT_AT].map((at) => endianness() === 'LE' ? info.readUInt32LE(at) : info.readUInt32BE(at))
  return waiting < most * LONG_QUEUE
}

/** @param {number} fd @param {number} events @returns {Buffer} a struct epoll_event with libuv's data, packed on x86-64 alone */
function eventOf (fd, events) {
  const words = process.arch === 'x64' ? [events, fd, 0] : [events, 0, ...(endianness() === 'LE' ? [fd, 0] : [0, fd])]
  const { buffer } = Uint32Array.from(words)
  return Buffer.from(buffer)
}

/** @param {number} fd @returns {number | null} the epoll that waits for it: proc_pid_fdinfo(5) */
function findEpoll (fd) {
  const target = new RegExp(`^tfd:\\s+${fd}\\s`, 'm')
  try {
    const epoll = readdirSync('/proc/self/fdinfo').find((name) => target.test(readOr(`/proc/self/fdinfo/${name}`)))
    return epoll === undefined ? null : Number(epoll)
  } catch {
    // ENOENT: /proc is not mounted.
    return null
  }
}

/** @param {string} file */
function readOr (file) {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // ENOENT: a descriptor that was closed meanwhile.
    return ''
  }
}

/** @returns {Calls | null} null: not Linux, or the optional package is absent */
function loadCalls () {
  if (process.platform !== 'linux') return null
  try {
    const libc = createRequire(import.meta.url)('koffi').load(null)
    return {
      control: libc.func('int epoll_ctl(int epoll, int operation, int fd, void *event)'),
      option: libc.func('int getsockopt(int fd, int level, int name, void *value, void *bytes)')
    }
  } catch {
    // No binary for this machine, or an app that may load none (--permission).
    return null
  }
}
