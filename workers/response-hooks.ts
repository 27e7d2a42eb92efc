import { createRequire } from 'node:module'
import type { ServerResponse } from 'node:http'

export type Socket =
  & import('node:net').Socket
  & { parser?: { onIncoming?: (request: object, keepAlive: boolean) => unknown } | null }

/**
 * Tells when an answer of HTTP/1 gets its connection, and when that is taken from it as all of it has been written.
 * Node's diagnostics channels tell the same by an object for each request and each answer.
 * Only for a process that has loaded node:http.
 * @param response any of the app's
 * @returns undoes it, unless another has put something over it; null: it cannot be done, as the app's answers have
 * methods of their own
 */
export function hookResponses (response: ServerResponse,
  { onAssign, onDetach }: { onAssign: (response: ServerResponse, socket: Socket) => void,
    onDetach: (response: ServerResponse, socket: Socket) => void }): (() => void) | null
{
  const { ServerResponse: { prototype } } = createRequire(import.meta.url)('node:http') as typeof import('node:http')
  const { assignSocket, detachSocket } = prototype
  if (response.assignSocket !== assignSocket || response.detachSocket !== detachSocket) return null
  const own = { assignSocket: function (this: ServerResponse, socket: Socket) {
    onAssign(this, socket)
    return assignSocket.call(this, socket)
  }, detachSocket: function (this: ServerResponse, socket: Socket) {
    onDetach(this, socket)
    return detachSocket.call(this, socket)
  } }
  Object.assign(prototype, own)
  return () => {
    if (prototype.assignSocket === own.assignSocket) prototype.assignSocket = assignSocket
    if (prototype.detachSocket === own.detachSocket) prototype.detachSocket = detachSocket
  }
}

/**
 * Calls back before each further request of a connection is taken. `socket`: on which the first one is. Returns whether
 * this version of Node lets it be known.
 */
export function watchIncoming (socket: Socket, onRequest: () => void): boolean {
  const { parser } = socket
  const onIncoming = parser?.onIncoming
  if (!parser || typeof onIncoming !== 'function') return false
  parser.onIncoming = function (request, keepAlive) {
    onRequest()
    return onIncoming.call(this, request, keepAlive)
  }
  return true
}
