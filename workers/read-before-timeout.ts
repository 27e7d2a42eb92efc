import net from 'node:net'
import { setImmediate } from 'node:timers'

/**
 * Reads what has come over a connection of a server before the time of that is over. Node looks at its timers first:
 * where this process had no CPU for longer than the keep-alive timeout, or its app kept it busy, the connection would be
 * cut, and the next request with it, which waits in the kernel.
 */
export function readBeforeTimeout () {
  const { _onTimeout } = net.Socket.prototype
  net.Socket.prototype._onTimeout = function (this: net.Socket) {
    if (!this.server) return _onTimeout.call(this)
    const { bytesRead } = this
    setImmediate(() => {
      if (!this.destroyed && this.bytesRead === bytesRead) _onTimeout.call(this)
    })
  }
}
