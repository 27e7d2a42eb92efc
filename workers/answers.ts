import { createRequire } from 'node:module'
import type { AnyResponse as Response } from './node-internals.d.ts'

/** Shows the beginning of each answer of HTTP/1 of this process, before a byte of it is sent. */
export function watchAnswers ({ onHead, onBody }: {
  onHead: (response: Response, head: string) => void,
  /** how its first part begins; null: nobody asks */
  onBody: ((response: Response, body: string) => void) | null
}) {
  // Whoever has a server has loaded it; an app without one does not have to.
  const { ServerResponse: { prototype } } = createRequire(import.meta.url)('node:http') as typeof import('node:http')
  const { writeHead } = prototype
  prototype.writeHead = function (...args: unknown[]) {
    const result = Reflect.apply(writeHead, this, args)
    const { _header: head } = this as Response
    if (typeof head === 'string') onHead(this, head)
    return result
  }
  if (!onBody) return
  const seen: WeakSet<Response> = new WeakSet()
  for (const name of ['write', 'end'] as const) {
    const send = prototype[name]
    prototype[name] = function (...args: unknown[]) {
      const [chunk] = args
      if (!seen.has(this) && (typeof chunk === 'string' || chunk instanceof Uint8Array)) {
        seen.add(this)
        onBody(this, beginningOf(chunk))
      }
      return Reflect.apply(send, this, args)
    }
  }
}

/** No more than this of the first part is shown. */
const MAX_BODY = 2048

function beginningOf (chunk: string | Uint8Array) {
  if (typeof chunk === 'string') return chunk.slice(0, MAX_BODY)
  return Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, MAX_BODY)).toString('latin1')
}
