import { constants } from 'node:os'
import { setImmediate } from 'node:timers'

/**
 * Looks to Node like the handle of a socket that listens, and is none: for an address that this worker cannot have
 * because the worker that it is to replace has it, or one that covers it. Without that one it would be free, which is all
 * that an app wants to know that looks for a free port.
 * @param {import('./protocol.js').SocketQuery} query
 * @param {() => void} onClose
 */
export function createPlaceholderHandle ({ address, port, addressType }, onClose) {
  let isOpen = true
  return {
    isOpen: () => isOpen,
    listen: () => 0,
    /** @param {(() => void) | undefined} callback */
    close (callback) {
      if (isOpen) onClose()
      isOpen = false
      if (typeof callback === 'function') setImmediate(callback)
    },
    ref () {},
    unref () {},
    hasRef: () => false,
    /** @param {Record<string, unknown>} out */
    getsockname (out) {
      const family = addressType === 4 ? 'IPv4' : 'IPv6'
      Object.assign(out, { address: address ?? (family === 'IPv4' ? '0.0.0.0' : '::'), port, family })
      return 0
    }
  }
}

/**
 * What Node would have said at once.
 * @param {import('./node-internals.d.ts').Asker} server @param {string} code @param {{ address?: string | null, port?: number | null }} [where]
 */
export function failListen (server, code, { address, port } = {}) {
  const place = port === undefined ? '' : `: address already in use ${address ?? '::'}:${port}`
  /** @type {Partial<Record<string, number>>} */
  const { [code]: errno = 0 } = constants.errno
  server.close()
  server.emit('error', Object.assign(new Error(`listen ${code}${place}`), { code, errno: -errno, syscall: 'listen', ...(port === undefined ? {} : { address, port }) }))
}
