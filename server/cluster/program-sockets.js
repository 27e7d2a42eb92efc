import { readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { isUdp } from '../../workers/protocol.js'
import { hearProgram } from '../programs/running-program.js'
import { addressOf, descriptorOf, ownAddressOf, processOf, readAddress, socketQuery } from '../programs/socket-request.js'
import { loadSystemCalls } from '../programs/system-calls.js'
import { socketsOf } from '../system/open-sockets.js'

/** @typedef {import('../programs/system-calls.js').Notice} Notice */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {{ id: bigint, pid: number, fd: number, query: SocketQuery, waits: boolean, isClosedOnExec: boolean }} Asked  a call of bind(2) that waits for the master's answer; `waits`: calls on the socket wait, too */
/** @typedef {{ query: SocketQuery, key: string, pid: number, isListening: boolean }} Bound  `key`: of the master; `pid`: of the process that has bound it; UDP listens as soon as it is bound */

const EADDRINUSE = -constants.errno.EADDRINUSE
const LOOK_EVERY_MS = 5000

/**
 * The sockets of a program that is no Node program: for each address that it binds it gets one of the master, in the place
 * of its own. What it asks and tells are the messages of a Node worker.
 * @param {number} listener  of the program
 * @param {object} parts
 * @param {(message: import('../../workers/protocol.js').ToMaster) => void} parts.onMessage
 * @param {() => number[]} parts.pids  of all processes that the program has by now; asked seldom, as it takes a look at all that there are
 */
export function createProgramSockets (listener, { onMessage, pids }) {
  const calls = /** @type {import('../programs/system-calls.js').SystemCalls} */ (loadSystemCalls())
  /** @type {Map<number, Asked>} */
  const waiting = new Map()
  /** What it has bound, by the inode of the socket. @type {Map<number, Bound>} */
  const bound = new Map()
  /** Sockets that are bound to nothing, while the program believes that they are. @type {Set<number>} */
  const pretended = new Set()
  let seq = 0
  const timer = setInterval(releaseClosed, LOOK_EVERY_MS).unref()
  const stopHearing = hearProgram(listener, (notice) => {
    try {
      if (notice.call === 'bind') hearBind(notice)
      else hearListen(notice)
    } catch {
      // It has ended, or may not be looked into.
      calls.goOn(listener, notice.id)
    }
  })
  return {
    answer,
    releaseClosed,

    close () {
      clearInterval(timer)
      stopHearing()
    }
  }

  /** @param {Notice} notice */
  function hearBind ({ id, pid: thread, args: [number, address, length] }) {
    const pid = processOf(thread)
    const fd = Number(number)
    const { flags, protocol, isClosedOnExec, waits } = descriptorOf({ pid, fd }, calls)
    const query = socketQuery(readAddress(thread, address, length), { protocol, isV6Only: () => askSocket({ pid, fd }, calls.isV6Only, false) }, () => readlinkSync(`/proc/${pid}/cwd`))
    if (query === null || flags === null) return calls.goOn(listener, id)
    // Whoever looks for a free port closes it again, and expects it to be free then.
    releaseClosed()
    if (isBoundAlready(query) && !askSocket({ pid, fd }, calls.sharesPort, true)) return calls.answer(listener, id, EADDRINUSE)
    waiting.set(++seq, { id, pid, fd, query, waits, isClosedOnExec })
    onMessage({ type: 'socket', seq, query })
  }

  /** @param {SocketQuery} query */
  function isBoundAlready (query) {
    return [...bound.values()].some(({ query: { address, port, addressType } }) => address === query.address && port === query.port && addressType === query.addressType)
  }

  /** @template T @param {{ pid: number, fd: number }} place @param {(fd: number) => T} ask @param {T} otherwise  where a container forbids to ask */
  function askSocket ({ pid, fd }, ask, otherwise) {
    const copy = calls.descriptorOf(pid, fd)
    if (copy < 0) return otherwise
    try {
      return ask(copy)
    } finally {
      calls.close(copy)
    }
  }

  /** Nobody hears when a program closes a socket, so it is looked for in its descriptors. */
  function releaseClosed () {
    const missing = without([...bound], [...bound.values()].map(({ pid }) => pid))
    if (missing.length === 0) return
    // Whoever has bound it may have passed it on.
    for (const [inode, { key, query, isListening }] of without(missing, pids())) {
      bound.delete(inode)
      onMessage({ type: 'release-socket', key })
      if (isListening) onMessage({ type: 'closed', address: addressOf(query) })
    }
  }

  /** @param {[number, Bound][]} sockets @param {number[]} processes @returns {[number, Bound][]} those that none of the processes has */
  function without (sockets, processes) {
    const open = new Set(processes.flatMap((pid) => [...socketsOf(pid)]))
    return sockets.filter(([inode]) => !open.has(inode))
  }

  /** @param {Omit<import('../../workers/protocol.js').SocketReply, 'type'>} reply @param {import('./worker-handle.js').Handle} [handle] */
  function answer ({ seq: number, key, errno, isPlaceholder, keepsFlags = false }, handle) {
    const { fd: own } = /** @type {{ fd?: number }} */ (handle ?? {})
    const asked = waiting.get(number)
    if (!asked) return
    waiting.delete(number)
    const { id, pid, fd, query, waits, isClosedOnExec } = asked
    if (errno) return calls.answer(listener, id, errno)
    if (isPlaceholder) return pretend({ id, pid, fd })
    if (own === undefined) return calls.goOn(listener, id)
    if (!keepsFlags) calls.letCallsWait(own, waits)
    calls.put(listener, id, { own, theirs: fd, isClosedOnExec })
    bound.set(descriptorOf({ pid, fd }, calls).inode, { query, key, pid, isListening: isUdp(query) })
    calls.answer(listener, id, 0)
  }

  /**
   * Another worker has this address, or one that covers it. Whoever only looks for a free port would have found it free
   * without that worker, and closes the socket again.
   * @param {Pick<Asked, 'id' | 'pid' | 'fd'>} asked
   */
  function pretend ({ id, pid, fd }) {
    pretended.add(descriptorOf({ pid, fd }, calls).inode)
    calls.answer(listener, id, 0)
  }

  /** @param {Notice} notice */
  function hearListen ({ id, pid: thread, args: [number] }) {
    const place = { pid: processOf(thread), fd: Number(number) }
    const { inode } = descriptorOf(place, calls)
    if (pretended.has(inode)) return calls.answer(listener, id, 0)
    const known = bound.get(inode)
    const address = known ? addressOf(known.query) : askSocket(place, (fd) => ownAddressOf(calls.nameOf(fd)), 'unknown')
    calls.goOn(listener, id)
    if (known) known.isListening = true
    onMessage({ type: 'listening', address, isFixed: known !== undefined })
  }
}
