import { encode, encodingFor, PASSING } from '../api/encoding.js'

/** Less than a packet of a network. */
const MIN_BYTES = 1400
const TEXTS = /^(?:text\/|application\/(?:problem\+)?json|application\/x-ndjson|image\/svg)/

/**
 * Sends whole answers compressed; what is streamed goes out as it comes. Whoever makes a page show words of theirs and
 * sees its length could guess, try by try, what else is in it (BREACH), so nothing secret may be compressed. The secret
 * of a session is in its cookie alone, and there is no secret in a page: strangers' pages are told from ours by headers.
 * New tokens and sign-in links are answers to POST, which stay as they are.
 * @type {import('express').RequestHandler}
 */
export function compress (req, res, next) {
  const encoding = req.method === 'GET' && req.auth ? encodingFor(req) : null
  if (!encoding) return next()
  const end = res.end.bind(res)
  res.end = /** @type {any} */ (endCompressed)
  next()

  /** @param {any} chunk @param {[any?, any?]} rest */
  function endCompressed (chunk, ...rest) {
    const isWhole = (typeof chunk === 'string' || Buffer.isBuffer(chunk)) && !res.headersSent && !res.hasHeader('Content-Encoding')
    const content = isWhole ? Buffer.from(chunk) : null
    if (!content || content.length < MIN_BYTES || !TEXTS.test(String(res.getHeader('Content-Type')))) return end(chunk, ...rest)
    send(content)
    return res
  }

  async function send (/** @type {Buffer} */ content) {
    try {
      const encoded = await encode(content, /** @type {import('../api/encoding.js').Encoding} */ (encoding), PASSING)
      if (res.headersSent || res.destroyed) return
      res.setHeader('Content-Encoding', String(encoding))
      res.setHeader('Content-Length', encoded.length)
      end(encoded)
    } catch {
      // ENOMEM: it is sent as it is.
      end(content)
    }
  }
}
