import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request } from 'express'

/** Encodings that make an answer smaller. */
export type Encoding = 'br' | 'gzip'

const ENCODINGS: readonly Encoding[] = Object.freeze(['br', 'gzip'])
const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/** Compression levels: for files that are compressed once and kept, and for answers that are compressed each time. */
export const KEPT = Object.freeze({ br: 11, gzip: 9 })
export const PASSING = Object.freeze({ br: 8, gzip: 4 })

/** Picks the smallest encoding that the client accepts: a browser lists equal choices with gzip first. */
export function encodingFor (req: Pick<Request, 'acceptsEncodings'>): Encoding | null {
  return ENCODINGS.find((encoding) => req.acceptsEncodings([encoding])) ?? null
}

/** Compresses outside of the event loop. */
export function encodeContent (content: Buffer, encoding: Encoding,
  levels: Readonly<Record<Encoding, number>>): Promise<Buffer>
{
  if (encoding === 'gzip') return zip(content, { level: levels.gzip })
  return brotli(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: levels.br, [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  })
}
