import { whyNotStaged } from './unix-staging.js'

/** @typedef {import('../programs/helper-link.js').HelperProgram} HelperProgram */
/** @typedef {import('../programs/heard-program.js').Asked} Asked */
/** @typedef {import('../programs/helper-link.js').Hooks} Hooks */
/** @typedef {ReturnType<typeof createProgramSockets>} ProgramSockets */

const LOOK_EVERY_MS = 5000

/**
 * The sockets of a program that is no Node program: for each address that it binds it gets one of the master, in the place
 * of its own. What it asks and tells are the messages of a Node worker.
 * @param {object} parts
 * @param {(message: import('../../workers/protocol.js').ToMaster) => void} parts.onMessage
 */
export function createProgramSockets ({ onMessage }) {
  /** @type {Map<number, Asked>} */
  const waiting = new Map()
  /** @type {HelperProgram | null} */
  let helper = null
  let seq = 0
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** @type {Omit<Hooks, 'onSaid'>} */
    hooks: {
      onAsked (asked) {
        waiting.set(++seq, asked)
        onMessage({ type: 'socket', seq, query: asked.query })
      },
      onListening: (address, isFixed) => onMessage({ type: 'listening', address, isFixed }),
      onClosed: (address) => onMessage({ type: 'closed', address }),
      onReleased: (key) => onMessage({ type: 'release-socket', key }),
      onNote: (text) => onMessage({ type: 'socket-note', text })
    },

    /** @param {HelperProgram} answerer  of its calls */
    answeredBy (answerer) { helper = answerer },

    /** @param {Omit<import('../../workers/protocol.js').SocketReply, 'type'>} reply @param {import('./worker-handle.js').Handle} [handle] */
    answer ({ seq: number, key, errno, isPlaceholder, keepsFlags }, handle) {
      const { fd } = /** @type {{ fd?: number }} */ (handle ?? {})
      const asked = waiting.get(number)
      if (!asked) return
      waiting.delete(number)
      const whyShared = asked.query.port === -1 ? whyNotStaged() : null
      if (whyShared !== null) onMessage({ type: 'socket-note', text: `its Unix sockets stay the same over restarts, so clients of a worker that ends may be cut off: a new one ${whyShared}` })
      helper?.answer({ asked, key, ...(errno && { errno }), ...(isPlaceholder && { pretends: true }), ...(keepsFlags && { keepsFlags }) }, errno || isPlaceholder || fd === undefined ? undefined : () => /** @type {{ fd?: number }} */ (handle).fd)
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
