import cluster from 'node:cluster'
import type { EventEmitter } from 'node:events'

/** What Node says where the other end of the channel is gone. */
const GONE = ['EPIPE', 'ECONNRESET', 'ERR_IPC_CHANNEL_CLOSED']

type Sent = (error: (Error & { code?: string }) | null) => void

/**
 * The app does not notice the death of its master: what it sends is lost until the next master has replaced this
 * worker, and nothing is thrown. It hears no 'disconnect', at which many apps end, and finds itself connected.
 * Call this before the app runs, when all listeners that are to hear of it have been added.
 * @param parts one that is still starting ends with its master
 */
export function keepAppChannel ({ isOfUse }: { isOfUse: () => boolean }) {
  const { send } = process
  const own = new Set([process, cluster.worker].flatMap((emitter) => emitter?.rawListeners('disconnect') ?? []))
  let isLost = false

  process.send = send && function (...args) {
    const at = args.findIndex((each) => typeof each === 'function')
    const { [at]: callback } = args as unknown[]
    const told = (error: Parameters<Sent>[0]) => {
      const real = GONE.includes(String(error?.code)) && isOfUse() ? null : error
      if (typeof callback === 'function') callback(real)
      else if (real) Reflect.apply(process.emit, process, ['error', real])
    }
    if (isLost) {
      process.nextTick(told, null)
      return true
    }
    Reflect.set(args, at < 0 ? 3 : at, told)
    return Reflect.apply(send, process, args)
  }

  return {
    /** The master is gone. `disconnect`: Node's own, by which this process learns of it. */
    lose (disconnect: () => void) {
      isLost = isOfUse()
      if (isLost) { for (const emitter of [process, cluster.worker]) hideFromApp(emitter) }
      disconnect()
      if (isLost) process.connected = true
    }
  }

  function hideFromApp (emitter: EventEmitter | undefined) {
    if (!emitter) return
    for (const each of emitter.rawListeners('disconnect'))
      if (!own.has(each)) emitter.removeListener('disconnect', each as () => void)
  }
}
