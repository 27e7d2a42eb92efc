import { whyNotStaged } from './unix-staging.ts'
import type { HelperProgram, Hooks } from '../programs/helper-link.ts'
import type { Asked } from '../programs/heard-program.ts'
import type { SocketReply, ToMaster } from '../../workers/protocol.ts'
import type { Handle } from './worker-handle.ts'

export type ProgramSockets = ReturnType<typeof createProgramSockets>

const LOOK_EVERY_MS = 5000

/**
 * The sockets of a program that is no Node program: for each address that it binds it gets one of the master, in the
 * place of its own. What it asks and tells are the messages of a Node worker.
 */
export function createProgramSockets ({ onMessage }: { onMessage: (message: ToMaster) => void }) {
  const waiting: Map<number, Asked> = new Map()
  let helper: HelperProgram | null = null
  let seq = 0
  let timer: NodeJS.Timeout | undefined

  return {
    hooks: { onAsked (asked) {
      waiting.set(++seq, asked)
      onMessage({ type: 'socket', seq, query: asked.query })
    }, onListening: (address, isFixed) => onMessage({ type: 'listening', address, isFixed }),
      onClosed: (address) => onMessage({ type: 'closed', address }),
      onReleased: (key) => onMessage({ type: 'release-socket', key }),
      onNote: (text) => onMessage({ type: 'socket-note', text }) } as Omit<Hooks, 'onSaid'>,

    /** `answerer`: of its calls */
    answeredBy (answerer: HelperProgram) {
      helper = answerer
    },

    answer ({ seq: number, key, errno, isPlaceholder, keepsFlags }: Omit<SocketReply, 'type'>, handle?: Handle) {
      const { fd } = (handle ?? {}) as { fd?: number }
      const asked = waiting.get(number)
      if (!asked) return
      waiting.delete(number)
      const whyShared = asked.query.port === -1 ? whyNotStaged() : null
      if (whyShared !== null)
        onMessage({ type: 'socket-note',
          text:
            `its Unix sockets stay the same over restarts, so clients of a worker that ends may be cut off: a new one ${whyShared}` })
      helper?.answer({ asked, key, ...(errno && { errno }), ...(isPlaceholder && { pretends: true }),
        ...(keepsFlags && { keepsFlags }) },
        errno || isPlaceholder || fd === undefined ? undefined : () => (handle as { fd?: number }).fd)
      timer ??= setInterval(releaseClosed, LOOK_EVERY_MS).unref()
    },

    releaseClosed,

    close () {
      clearInterval(timer)
      helper?.close()
    }
  }

  /** Nobody hears when a program closes a socket, so it is looked for. */
  async function releaseClosed () {
    await helper?.look()
  }
}
