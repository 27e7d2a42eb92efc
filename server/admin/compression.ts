import { encodeContent, encodingFor, PASSING, type Encoding } from '../api/encoding.ts'
import type { RequestHandler } from 'express'

/** Smaller answers fit into one network packet anyway. */
const MIN_BYTES = 1400
const TEXTS = /^(?:text\/|application\/(?:problem\+)?json|application\/x-ndjson|image\/svg)/

/**
 * Compresses whole answers; streams are sent as they are. An attacker who puts text into a page and sees its compressed
 * length could guess the rest of it (BREACH), so no secret may be compressed. Pages hold none: the secret of a session
 * is in its cookie alone, and foreign pages are recognised by headers. New tokens and sign-in links are answers to
 * POST, which are not compressed.
 */
export const compressResponse: RequestHandler = (req, res, next) => {
  const encoding = req.method === 'GET' && req.auth ? encodingFor(req) : null
  if (!encoding) return next()
  const { end } = res
  res.end = (...args: unknown[]) => {
    const [chunk] = args
    const isWhole = (typeof chunk === 'string' || Buffer.isBuffer(chunk)) && !res.headersSent &&
      !res.hasHeader('Content-Encoding')
    const content = isWhole ? Buffer.from(chunk) : null
    if (!content || content.length < MIN_BYTES || !TEXTS.test(String(res.getHeader('Content-Type'))))
      return Reflect.apply(end, res, args)
    sendContent(content, encoding)
    return res
  }
  next()

  async function sendContent (content: Buffer, encoding: Encoding) {
    try {
      const encoded = await encodeContent(content, encoding, PASSING)
      if (res.headersSent || res.destroyed) return
      res.setHeader('Content-Encoding', encoding)
      res.setHeader('Content-Length', encoded.length)
      Reflect.apply(end, res, [encoded])
    } catch {
      // ENOMEM: it is sent uncompressed.
      Reflect.apply(end, res, [content])
    }
  }
}
