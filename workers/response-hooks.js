import { createRequire } from 'node:module'

/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('node:net').Socket & { parser?: { onIncoming?: (request: object, keepAlive: boolean) => unknown } | null }} Socket */

/**
 * Tells when an answer of HTTP/1 gets its connection, and when that is taken from it as all of it has been written. Node's
 * diagnostics channels tell the same by an object for each request and each answer.
 * Only for a process that has loaded node:http.
 * @param {ServerResponse} response  any of the app's @param {object} hooks
 * @param {(response: ServerResponse, socket: Socket) => void} hooks.onAssign @param {(response: ServerResponse, socket: Socket) => void} hooks.onDetach
 * @returns {(() => void) | null} undoes it, unless another has put something over it; null: it cannot be done, as the app's answers have methods of their own
 */
export function hookResponses (response, { onAssign, onDetach }) {
  const { ServerResponse: { prototype } } = /** @type {typeof import('node:http')} */ (createRequire(import.meta.url)('node:http'))
  const { assignSocket, detachSocket } = prototype
  if (response.assignSocket !== assignSocket || response.detachSocket !== detachSocket) return null
  const own = {
    assignSocket: /** @this {ServerResponse} */ function (/** @type {Socket} */ socket) {
      onAssign(this, socket)
      return assignSocket.call(this, socket)
    },
    detachSocket: /** @this {ServerResponse} */ function (/** @type {Socket} */ socket) {
      onDetach(this, socket)
      return detachSocket.call(this, socket)
    }
  }
  Object.assign(prototype, own)
  return () => {
    if (prototype.assignSocket === own.assignSocket) prototype.assignSocket = assignSocket
    if (prototype.detachSocket === own.detachSocket) prototype.detachSocket = detachSocket
  }
}

/**
 * Calls back before each further request of a connection is taken.
 * @param {Socket} socket  on which the first one is @param {() => void} onRequest
 * @returns {boolean} whether this version of Node lets it be known
 */
export function watchIncoming (socket, onRequest) {
  const { parser } = socket
  const onIncoming = parser?.onIncoming
  if (!parser || typeof onIncoming !== 'function') return false
  parser.onIncoming = function (request, keepAlive) {
    onRequest()
    return onIncoming.call(this, request, keepAlive)
  }
  return true
}
