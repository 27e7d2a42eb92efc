import { readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { hearProgram } from '../programs/running-program.js'
import { addressOf, descriptorOf, processOf, readAddress, socketQuery } from '../programs/socket-request.js'
import { loadSystemCalls } from '../programs/system-calls.js'

/** @typedef {import('../programs/system-calls.js').Notice} Notice */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {{ id: bigint, pid: number, fd: number, query: SocketQuery, waits: boolean, isClosedOnExec: boolean }} Asked a call that waits for the master's answer */

const EADDRINUSE = -constants.errno.EADDRINUSE

/**
 * The sockets of a program that is no Node program: for each address that it binds it gets one of the master, in the place
 * of its own. What it asks and tells are the messages of a Node worker.
 * @param {number} listener  of the program
 * @param {(message: import('../../workers/protocol.js').ToMaster) => void} onMessage
 */
export function createProgramSockets (listener, onMessage) {
  const calls = /** @type {import('../programs/system-calls.js').SystemCalls} */ (loadSystemCalls())
  /** @type {Map<number, Asked>} */
  const waiting = new Map()
  /** What it has bound, by the inode of the socket. @type {Map<string, SocketQuery>} */
  const bound = new Map()
  let seq = 0
  const close = hearProgram(listener, (notice) => {
    try {
      if (notice.call === 'bind') hearBind(notice)
      else hearListen(notice)
    } catch {
      // It has ended, or may not be looked into.
      calls.goOn(listener, notice.id)
    }
  })
  return { answer, close }

  /** @param {Notice} notice */
  function hearBind ({ id, pid: thread, args: [number, address, length] }) {
    const pid = processOf(thread)
    const fd = Number(number)
    const { flags, protocol, isClosedOnExec, waits } = descriptorOf({ pid, fd }, calls)
    const query = socketQuery(readAddress(thread, address, length), { protocol, isV6Only: () => isV6Only(pid, fd) }, () => readlinkSync(`/proc/${pid}/cwd`))
    if (query === null || flags === null) return calls.goOn(listener, id)
    waiting.set(++seq, { id, pid, fd, query, waits, isClosedOnExec })
    onMessage({ type: 'socket', seq, query })
  }

  /** @param {number} pid @param {number} fd */
  function isV6Only (pid, fd) {
    const copy = calls.descriptorOf(pid, fd)
    // A container may forbid to look, and hardly any program asks for it.
    if (copy < 0) return false
    const is = calls.isV6Only(copy)
    calls.close(copy)
    return is
  }

  /** @param {Omit<import('../../workers/protocol.js').SocketReply, 'type'>} reply @param {import('./worker-handle.js').Handle} [handle] */
  function answer ({ seq: number, errno, isPlaceholder, isOwn = false }, handle) {
    const { fd: own } = /** @type {{ fd?: number }} */ (handle ?? {})
    const asked = waiting.get(number)
    if (!asked) return
    waiting.delete(number)
    const { id, pid, fd, query, waits, isClosedOnExec } = asked
    if (errno || isPlaceholder) return calls.answer(listener, id, errno || EADDRINUSE)
    if (own === undefined) return calls.goOn(listener, id)
    // Node workers that have the same socket never wait at it.
    if (isOwn || query.port === -1 || typeof query.addressType === 'string') calls.letCallsWait(own, waits)
    calls.put(listener, id, { own, theirs: fd, isClosedOnExec })
    bound.set(descriptorOf({ pid, fd }, calls).inode, query)
    calls.answer(listener, id, 0)
  }

  /** @param {Notice} notice */
  function hearListen ({ id, pid: thread, args: [number] }) {
    const query = bound.get(descriptorOf({ pid: processOf(thread), fd: Number(number) }, calls).inode)
    calls.goOn(listener, id)
    if (query) onMessage({ type: 'listening', address: addressOf(query), isFixed: true })
  }
}
