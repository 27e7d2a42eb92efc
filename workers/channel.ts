import { wrapMessage, unwrapMessage, type Envelope, type ToMaster, type ToWorker } from './protocol.ts'
import type { DatagramHandle, SocketHandle } from './node-internals.d.ts'

export type Channel = ReturnType<typeof openChannel>

/** by type */
export type Messages = { [Message in ToWorker as Message['type']]: Message }
type Handlers = { [Type in keyof Messages]?: (message: Messages[Type], handle: HandleOf<Type>) => void }

/** The socket that comes along with `socket` and `accept-also`. */
type HandleOf<Type extends keyof Messages> = Type extends 'socket' ? SocketHandle | DatagramHandle : SocketHandle

/** Opens the worker's channel to its master, beside the app's own messages. */
export function openChannel () {
  const handlers: Handlers = {}

  process.on('internalMessage', (message: Envelope<ToWorker>, handle: SocketHandle & DatagramHandle) => {
    const body = unwrapMessage(message)
    if (body) deliver(body.type, body, handle)
  })

  return {
    send (message: ToMaster) {
      if (!process.connected) return
      // A failed send needs no answer: where the master is gone, this worker serves on, or 'disconnect' ends it.
      process.send?.(wrapMessage(message), undefined, undefined, () => {})
    },

    /** False: its master is gone */
    isOpen: (): boolean => Boolean(process.channel),

    on<Type extends keyof Messages> (type: Type, handler: NonNullable<Handlers[Type]>) {
      handlers[type] = handler
    }
  }

  function deliver<Type extends keyof Messages> (type: Type, message: Messages[Type],
    handle: SocketHandle & DatagramHandle)
  {
    handlers[type]?.(message, handle)
  }
}
