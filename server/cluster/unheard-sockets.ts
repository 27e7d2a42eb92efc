import { listeningSockets } from '../programs/listening-sockets.ts'
import { socketsOf } from '../system/open-sockets.ts'
import type { ToMaster } from '../../workers/protocol.ts'

/** As long as it does not listen, its first socket is waited for. */
const FIRST_EVERY_MS = 100
const LOOK_EVERY_MS = 5000

/** What a program listens on that the system does not let us hear: it has sockets of its own, which are looked for. */
export function createUnheardSockets ({ onMessage, pids }: {
  onMessage: (message: ToMaster) => void,
  /** of all processes that the program has by now */
  pids: () => number[]
}) {
  let known: Map<number, string> = new Map()
  let timer: NodeJS.Timeout
  lookAgain()
  return { answer () {}, releaseClosed: async () => look(), close () {
    clearTimeout(timer)
  } }

  function lookAgain () {
    timer = setTimeout(() => {
      look()
      lookAgain()
    }, known.size === 0 ? FIRST_EVERY_MS : LOOK_EVERY_MS).unref()
  }

  function look () {
    const all = pids()
    const found = listeningSockets(all[0], new Set(all.flatMap((pid) => [...socketsOf(pid)])))
    for (const [inode, address] of found)
      if (!known.has(inode)) onMessage({ type: 'listening', address, isFixed: true })
    for (const [inode, address] of known) if (!found.has(inode)) onMessage({ type: 'closed', address })
    known = found
  }
}
