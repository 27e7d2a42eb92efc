/** The same length as Node's own queue, within what the system allows. */
const BACKLOG = 511

/** @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle */

/**
 * Gives a server the connections of further sockets: of a port that only its slot has, or of another slot that nobody
 * serves for a while.
 * @param {{ channel: Pick<import('./channel.js').Channel, 'on'> }} parts
 */
export function acceptAlso ({ channel }) {
  /** @type {Map<string, { own: SocketHandle, others: Map<number | 'port', SocketHandle> }>} the handles of a server, by the key of its own */
  const servers = new Map()

  channel.on('accept-also', ({ key, name }, handle) => {
    const { own, others } = servers.get(key) ?? {}
    if (!own || others?.has(name)) return handle?.close()
    others?.set(name, handle)
    handle.onconnection = (error, client) => own.onconnection(error, client)
    if (handle.listen(BACKLOG)) closeOther(key, name)
  })
  channel.on('accept-no-more', ({ key, name }) => closeOther(key, name))

  return {
    /** @param {string} key @param {SocketHandle} own  a server's socket, before Node listens on it */
    take (key, own) {
      /** @type {Map<number | 'port', SocketHandle>} */
      const others = new Map()
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

  /** @param {string} key @param {number | 'port'} name */
  function closeOther (key, name) {
    const others = servers.get(key)?.others
    others?.get(name)?.close()
    others?.delete(name)
  }
}
