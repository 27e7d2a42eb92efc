import { constants } from 'node:os'
import { setImmediate } from 'node:timers'
import type { SocketQuery } from './protocol.ts'
import type { Asker } from './node-internals.d.ts'

/**
 * Makes what Node takes for the handle of a listening socket. The worker that this one replaces still has the address,
 * or one that covers it. An app that only looks for a free port thus finds it free, as it will be.
 */
export function createPlaceholderHandle ({ address, port, addressType }: SocketQuery, onClose: () => void) {
  let isOpen = true
  return { isOpen: () => isOpen, listen: () => 0, close (callback: (() => void) | undefined) {
    if (isOpen) onClose()
    isOpen = false
    if (typeof callback === 'function') setImmediate(callback)
  }, ref () {}, unref () {}, hasRef: () => false, getsockname (out: Record<string, unknown>) {
    const family = addressType === 4 ? 'IPv4' : 'IPv6'
    Object.assign(out, { address: address ?? (family === 'IPv4' ? '0.0.0.0' : '::'), port, family })
    return 0
  } }
}

/** Closes a server with the error that Node would have emitted at once. */
export function failListen (server: Asker, code: string,
  { address, port }: { address?: string | null, port?: number | null } = {})
{
  const place = port === undefined ? '' : `: address already in use ${address ?? '::'}:${port}`
  const { [code]: errno = 0 }: Partial<Record<string, number>> = constants.errno
  server.close()
  const facts = { code, errno: -errno, syscall: 'listen', ...(port !== undefined && { address, port }) }
  server.emit('error', Object.assign(new Error(`listen ${code}${place}`), facts))
}
