import { fstatSync } from 'node:fs'
import { createReadiness } from '../../workers/readiness.js'
import { addressOf } from '../programs/socket-request.js'
import { createProgramProbe } from './program-probe.js'

/** @typedef {import('../../workers/protocol.js').ToMaster} ToMaster */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {{ inode: number, address: string, isListening: boolean, at: number }} Bound  `at`: when it began to listen, by a count */

const WAITS_FOR_LISTEN = ['auto', 'listening']
/** A program that opens several ports binds the next one within this time after it listens at one. */
const SETTLE_MS = 25
/** A program may close what it has bound without listening there. */
const LOOK_EVERY_MS = 100

/**
 * When a program is ready: it listens at all that it has bound, or says so, and answers where it is asked.
 * It is told what the program and the master say to each other of sockets.
 * @param {{ signal: import('../../workers/protocol.js').BootSettings['readySignal'], probe: import('../../workers/protocol.js').ProbeSettings | null }} settings
 * @param {object} parts
 * @param {(message: ToMaster) => void} parts.onMessage
 * @param {(inode: number) => import('node:net').Socket | null} parts.connect  to this socket of the program alone
 * @param {() => Set<number>} parts.sockets  the inodes of those that it has open
 */
export function createProgramReadiness ({ signal, probe }, { onMessage, connect, sockets }) {
  /** Asked for, and not answered yet. @type {Map<number, SocketQuery>} */
  const asked = new Map()
  /** Of TCP, or a Unix socket. @type {Map<number, Bound>} */
  const bound = new Map()
  const readiness = probe && createReadiness(probe, {
    createClient: (_program, { timeoutMs }) => createProgramProbe({ targets: listTargets, connect, timeoutMs }),
    onSeen: (text) => onMessage({ type: 'probed', text }),
    onReady: beReady
  })
  let count = 0
  let isReady = false
  let isStopped = false
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** It runs. */
    started () {
      if (signal === 'online') beOfUse()
    },

    /** @param {Extract<ToMaster, { type: 'socket' }>} request */
    asks ({ seq, query }) { asked.set(seq, query) },

    /** @param {Pick<import('../../workers/protocol.js').SocketReply, 'seq' | 'errno' | 'isPlaceholder'>} reply @param {{ fd?: number }} [handle] */
    isAnswered ({ seq, errno, isPlaceholder }, { fd } = {}) {
      const query = asked.get(seq)
      asked.delete(seq)
      if (!query || errno || isPlaceholder || fd === undefined) return
      const address = addressOf(query)
      // It receives as soon as it is bound.
      if (typeof query.addressType === 'string') onMessage({ type: 'listening', address, isFixed: true })
      else bound.set(fstatSync(fd).ino, { inode: fstatSync(fd).ino, address, isListening: false, at: 0 })
      lookIn(SETTLE_MS)
    },

    /** @param {string} address */
    listens (address) {
      const socket = [...bound.values()].find((each) => each.address === address && !each.isListening)
      if (socket) Object.assign(socket, { isListening: true, at: count++ })
      lookIn(SETTLE_MS)
    },

    /** It says that it is ready: sd_notify(3). */
    says () { beOfUse() },

    /** It will not serve, or nobody waits for that here any more. */
    stop () {
      isStopped = true
      clearTimeout(timer)
      readiness?.stop()
    }
  }

  function listTargets () {
    return [...bound.values()].filter(({ isListening }) => isListening).sort((a, b) => a.at - b.at)
  }

  /** @param {number} ms */
  function lookIn (ms) {
    clearTimeout(timer)
    if (!isReady && !isStopped) timer = setTimeout(look, ms)
  }

  /** However long it takes: a port that is bound is one that it means to serve. */
  function look () {
    const open = sockets()
    for (const { inode, isListening } of bound.values()) if (!isListening && !open.has(inode)) bound.delete(inode)
    if ([...bound.values()].some(({ isListening }) => !isListening)) lookIn(LOOK_EVERY_MS)
    else if (WAITS_FOR_LISTEN.includes(signal)) beOfUse()
  }

  /** Only the probe is left. */
  function beOfUse () {
    if (isReady || isStopped) return
    if (!readiness) return beReady()
    readiness.begin()
    const [first] = listTargets()
    if (first) readiness.listening(PROGRAM, first.address)
  }

  function beReady (report = {}) {
    if (isReady || isStopped) return
    isReady = true
    clearTimeout(timer)
    onMessage({ type: 'ready', ...report })
  }
}

/** What the probe asks, at whichever of its sockets. */
const PROGRAM = Object.freeze({ listening: true })
