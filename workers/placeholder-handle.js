import { constants } from 'node:os'
import { setImmediate } from 'node:timers'

/**
 * Makes what Node takes for the handle of a listening socket. The worker that this one replaces still has the address, or
 * one that covers it. An app that only looks for a free port thus finds it free, as it will be.
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
 * Closes a server with the error that Node would have emitted at once.
 * @param {import('./node-internals.d.ts').Asker} server @param {string} code @param {{ address?: string | null, port?: number | null }} [where]
 */
export function failListen (server, code, { address, port } = {}) {
  const place = port === undefined ? '' : `: address already in use ${address ?? '::'}:${port}`
  /** @type {Partial<Record<string, number>>} */
  const { [code]: errno = 0 } = constants.errno
  server.close()
  const facts = { code, errno: -errno, syscall: 'listen', ...(port !== undefined && { address, port }) }
  server.emit('error', Object.assign(new Error(`listen ${code}${place}`), facts))
}
