import net from 'node:net'
import { setImmediate } from 'node:timers'

/**
 * Has a server read what has come over a connection before the connection times out. Node looks at its timers first:
 * after a time without a CPU, or in code of the app, that is longer than the keep-alive timeout, it would cut the
 * connection while the next request waits in the kernel.
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
