import { isUdp } from '../../workers/protocol.ts'
import { createReadiness } from '../../workers/readiness.ts'
import { addressOf } from '../programs/socket-request.ts'
import { fstatSocket } from '../../workers/socket-file.ts'
import { tellProgramActivity } from './program-activity.ts'
import { createProgramProbe } from './program-probe.ts'
import type { Socket } from 'node:net'
import type { BootSettings, ProbeSettings, SocketQuery, SocketReply, ToMaster } from '../../workers/protocol.ts'

/** `message`: a line of its output */
type Signal = BootSettings['readySignal']
/** how a program says that it is ready: sd_notify(3), or a line of its output */
type Word = 'notify' | 'line'
/** `at`: its place among those that listen */
type Bound = { inode: number, address: string, isListening: boolean, isUdp: boolean, at: number }

/** A program that opens several ports, or looks for a free one, binds the next one within this time. */
const SETTLE_MS = 50
/** A program may close what it has bound without listening there. */
const LOOK_EVERY_MS = 100
/** Which word counts with each signal; null: none. */
const WORDS: Readonly<Record<Signal, Word | null>> = Object.freeze({ auto: 'notify', notify: 'notify', message: 'line',
  listening: null, online: null })
/** With these signals a program is not ready before it has said so. */
const WAIT_FOR_WORD: readonly Signal[] = Object.freeze(['notify', 'message'])

/**
 * Finds out when a program is ready: once it listens at all that it has bound, or says so, or runs where that is
 * enough, and answers the probe. It is told what the program and the master say to each other of sockets.
 */
export function createProgramReadiness ({ signal, probe }: { signal: Signal, probe: ProbeSettings | null },
  { onMessage, connect, look }: {
    onMessage: (message: ToMaster) => void,
    /** to this socket of the program alone */
    connect: (inode: number) => Socket | null,
    /** whether it has closed some of them, which `closes` is told of by then */
    look: () => Promise<void>
  })
{
  /** What it asks for, until that is answered; by number. */
  const asked: Map<number, SocketQuery> = new Map()
  /** By the key of the master's socket, or by the address where the program has a socket of its own. */
  const bound: Map<string, Bound> = new Map()
  const readiness = probe &&
    createReadiness(probe, {
      createClient: (_program, { timeoutMs }) => createProgramProbe({ targets: listTargets, connect, timeoutMs }),
      onSeen: (text) => onMessage({ type: 'probed', text }),
      onReady: beReady
    })
  let count = 0
  let hasSaid = false
  let isReady = false
  let isStopped = false
  let activity: ReturnType<typeof tellProgramActivity> | undefined
  let timer: NodeJS.Timeout | undefined

  return {
    /** It runs. */
    started (pid: number) {
      if (signal === 'online') beOfUse()
      else if (signal === 'auto') activity = tellProgramActivity({ pid, onMessage })
    },

    /** It is ready by its own account. */
    says (word: Word) {
      if (WORDS[signal] !== word) return
      hasSaid = true
      activity?.stop()
      beOfUse()
    },

    /** It is of use although it does not listen. */
    countsAsReady () {
      activity?.stop()
    },

    asks ({ seq, query }: Extract<ToMaster, { type: 'socket' }>) {
      asked.set(seq, query)
    },

    isAnswered ({ seq, key, errno, isPlaceholder }: Pick<SocketReply, 'seq' | 'key' | 'errno' | 'isPlaceholder'>,
      { fd }: { fd?: number } = {})
    {
      const query = asked.get(seq)
      asked.delete(seq)
      if (!query || errno || isPlaceholder || fd === undefined) return
      const address = addressOf(query)
      // It receives as soon as it is bound.
      const receives = isUdp(query)
      bound.set(key, { inode: fstatSocket(fd).ino, address, isListening: receives, isUdp: receives, at: count++ })
      if (receives) onMessage({ type: 'listening', address, isFixed: true })
      lookIn(SETTLE_MS)
    },

    listens (address: string) {
      activity?.stop()
      const same = [...bound.values()].filter((each) => each.address === address)
      const socket = same.find(({ isListening }) => !isListening)
      if (socket) Object.assign(socket, { isListening: true, at: count++ })
      else if (same.length === 0)
        bound.set(address, { inode: 0, address, isListening: true, isUdp: false, at: count++ })
      lookIn(SETTLE_MS)
    },

    closes (key: string) {
      bound.delete(key)
    },

    /** It will not serve, or nobody waits for that here any more. */
    stop () {
      isStopped = true
      activity?.stop()
      clearTimeout(timer)
      readiness?.stop()
    }
  }

  function listTargets () {
    return [...bound.values()].filter(({ isListening, isUdp }) => isListening && !isUdp).sort((a, b) => a.at - b.at)
  }

  function lookIn (ms: number) {
    clearTimeout(timer)
    if (!isReady && !isStopped) timer = setTimeout(judge, ms)
  }

  /** However long it takes: a port that is bound is one that it means to serve. */
  async function judge () {
    if (WAIT_FOR_WORD.includes(signal) && !hasSaid) return
    await look()
    const all = [...bound.values()]
    if (all.some(({ isListening }) => !isListening)) lookIn(LOOK_EVERY_MS)
    else if (all.length > 0) beOfUse()
  }

  /** Where it is probed, it is ready once it has answered, and otherwise now. */
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
    activity?.stop()
    clearTimeout(timer)
    onMessage({ type: 'ready', ...report })
  }
}

/** The probe asks it at whichever of its sockets answers, so they are one server to it. */
const PROGRAM = Object.freeze({ listening: true })
