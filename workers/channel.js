import { wrapMessage, unwrapMessage } from './protocol.js'

/** @typedef {ReturnType<typeof openChannel>} Channel */

/** The worker's channel to its master, beside the app's own messages. */
export function openChannel () {
  /** @type {Map<string, (message: any, handle: any) => void>} */
  const handlers = new Map()

  process.on('internalMessage', (message, handle) => {
    const body = unwrapMessage(message)
    if (body) handlers.get(body.type)?.(body, handle)
  })

  return {
    /** @param {import('./protocol.js').ToMaster} message */
    send (message) {
      if (!process.connected) return
      // A master that is gone ends this worker by 'disconnect'; a failed send has nothing to add to that.
      process.send?.(wrapMessage(message), undefined, undefined, () => {})
    },

    /** @param {import('./protocol.js').ToWorker['type']} type @param {(message: any, handle: any) => void} handler */
    on (type, handler) { handlers.set(type, handler) }
  }
}
