import { createRequire } from 'node:module'

/** @typedef {import('./node-internals.d.ts').AnyResponse} Response */

/**
 * Shows the beginning of each answer of HTTP/1 of this process, before a byte of it is sent.
 * @param {object} hooks
 * @param {(response: Response, head: string) => void} hooks.onHead
 * @param {((response: Response, body: string) => void) | null} hooks.onBody  how its first part begins; null: nobody asks
 */
export function watchAnswers ({ onHead, onBody }) {
  // Whoever has a server has loaded it; an app without one does not have to.
  const { ServerResponse: { prototype } } = /** @type {typeof import('node:http')} */ (createRequire(import.meta.url)('node:http'))
  const { writeHead } = prototype
  prototype.writeHead = function (/** @type {any[]} */ ...args) {
    const result = Reflect.apply(writeHead, this, args)
    const { _header: head } = /** @type {Response} */ (this)
    if (typeof head === 'string') onHead(this, head)
    return result
  }
  if (!onBody) return
  /** @type {WeakSet<Response>} */
  const seen = new WeakSet()
  for (const name of /** @type {const} */ (['write', 'end'])) {
    const send = prototype[name]
    prototype[name] = function (/** @type {any[]} */ ...args) {
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

/** @param {string | Uint8Array} chunk */
function beginningOf (chunk) {
  if (typeof chunk === 'string') return chunk.slice(0, MAX_BODY)
  return Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, MAX_BODY)).toString('latin1')
}
