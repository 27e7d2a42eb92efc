import { wrapMessage, unwrapMessage } from './protocol.js'

/** @typedef {ReturnType<typeof openChannel>} Channel */

/** @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {import('./node-internals.d.ts').DatagramHandle} DatagramHandle */

/** @typedef {import('./protocol.js').ToWorker} ToWorker */

/**
 * @typedef {{ [Message in ToWorker as Message['type']]: Message }} Messages  by type
 * @typedef {{ [Type in keyof Messages]?: (message: Messages[Type], handle: HandleOf<Type>) => void }} Handlers
 */

/**
 * The socket that comes along with `socket` and `accept-also`.
 * @template {keyof Messages} Type
 * @typedef {Type extends 'socket' ? SocketHandle | DatagramHandle : SocketHandle} HandleOf
 */

/** Opens the worker's channel to its master, beside the app's own messages. */
export function openChannel () {
  /** @type {Handlers} */
  const handlers = {}

  process.on('internalMessage', (/** @type {import('./protocol.js').Envelope<ToWorker>} */ message, /** @type {SocketHandle & DatagramHandle} */ handle) => {
    const body = unwrapMessage(message)
    if (body) deliver(body.type, body, handle)
  })

  return {
    /** @param {import('./protocol.js').ToMaster} message */
    send (message) {
      if (!process.connected) return
      // A failed send needs no answer: where the master is gone, this worker serves on, or 'disconnect' ends it.
      process.send?.(wrapMessage(message), undefined, undefined, () => {})
    },

    /** @returns {boolean} false: its master is gone */
    isOpen: () => Boolean(process.channel),

    /**
     * @template {keyof Messages} Type
     * @param {Type} type @param {NonNullable<Handlers[Type]>} handler
     */
    on (type, handler) { handlers[type] = handler }
  }

  /** @template {keyof Messages} Type @param {Type} type @param {Messages[Type]} message @param {SocketHandle & DatagramHandle} handle */
  function deliver (type, message, handle) {
    handlers[type]?.(message, handle)
  }
}
