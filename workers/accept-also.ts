import type { SocketHandle } from './node-internals.d.ts'
import type { Channel } from './channel.ts'

/** The same length as Node's own queue, within what the system allows. */
const BACKLOG = 511

/**
 * Gives a server the connections of further sockets: of a port that only its slot has, or of another slot that nobody
 * serves for a while.
 */
export function acceptAlso ({ channel }: { channel: Pick<Channel, 'on'> }) {
  /** the handles of a server, by the key of its own */
  const servers: Map<string, { own: SocketHandle, others: Map<number | 'port', SocketHandle> }> = new Map()

  channel.on('accept-also', ({ key, name }, handle) => {
    const { own, others } = servers.get(key) ?? {}
    if (!own || others?.has(name)) return handle?.close()
    others?.set(name, handle)
    handle.onconnection = (error, client) => own.onconnection(error, client)
    if (handle.listen(BACKLOG)) closeOther(key, name)
  })
  channel.on('accept-no-more', ({ key, name }) => closeOther(key, name))

  return {
    /** `own`: a server's socket, before Node listens on it */
    take (key: string, own: SocketHandle) {
      const others: Map<number | 'port', SocketHandle> = new Map()
      const { close } = own
      servers.set(key, { own, others })
      own.close = function (callback) {
        own.close = close
        if (servers.get(key)?.own === own) servers.delete(key)
        for (const handle of others.values()) handle.close()
        return close.call(this, callback)
      }
    }
  }

  function closeOther (key: string, name: number | 'port') {
    const others = servers.get(key)?.others
    others?.get(name)?.close()
    others?.delete(name)
  }
}
