import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Encodings that make an answer smaller. @typedef {'br' | 'gzip'} Encoding */

/** @type {readonly Encoding[]} */
const ENCODINGS = Object.freeze(['br', 'gzip'])
const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/** Compression levels: for files that are compressed once and kept, and for answers that are compressed each time. */
export const KEPT = Object.freeze({ br: 11, gzip: 9 })
export const PASSING = Object.freeze({ br: 8, gzip: 4 })

/**
 * Picks the smallest encoding that the client accepts: a browser lists equal choices with gzip first.
 * @param {Pick<import('express').Request, 'acceptsEncodings'>} req @returns {Encoding | null}
 */
export function encodingFor (req) {
  return ENCODINGS.find((encoding) => req.acceptsEncodings([encoding])) ?? null
}

/**
 * Compresses outside of the event loop.
 * @param {Buffer} content @param {Encoding} encoding @param {Readonly<Record<Encoding, number>>} levels
 * @returns {Promise<Buffer>}
 */
export function encodeContent (content, encoding, levels) {
  if (encoding === 'gzip') return zip(content, { level: levels.gzip })
  return brotli(content, { params: { [constants.BROTLI_PARAM_QUALITY]: levels.br, [constants.BROTLI_PARAM_SIZE_HINT]: content.length } })
}
