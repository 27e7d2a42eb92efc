import { setImmediate, setTimeout } from 'node:timers'
import type { IncomingMessage as Request } from 'node:http'
import type { Readable } from 'node:stream'
import type { AnySocket } from './node-internals.d.ts'

/** The events by which a server passes on what a client asks for; the request comes first. */
export const ASKED: ReadonlySet<string | symbol> = new Set(['request', 'checkContinue', 'checkExpectation', 'upgrade',
  'connect'])

/** A body that comes in parts of unknown length is kept until it is whole; one that is longer than this is not. */
const MAX_BODY = 1024 * 1024
/** Headers of which a part has come are looked for this often, until they are whole. */
const LOOK_EVERY_MS = 5
/** What Node's parser calls as the first byte of a request comes: HTTPParser.kOnMessageBegin. */
const ON_BEGIN = 0

/** `head`: what has been read behind a request that changes the protocol */
export type Asked = { request: Request, head: Buffer | null }

/**
 * What a client has asked on a connection, as the bytes that it has sent, so that another process can be asked the same
 * on that connection. Nothing more is read from it here. `asked`: whose headers have just been read, and which nobody
 * has yet. What is asked meanwhile is added to it; `then`: what has been read of all; the rest is to be read from the
 * connection; `otherwise`: the newest is too long; nothing of it is lost.
 */
export function takeBack (asked: Asked[], then: (bytes: Buffer) => void, otherwise: () => void) {
  /** Bodies in parts that had to be waited for. */
  const waitedFor: Map<Request, Buffer[]> = new Map()
  const isAmidHeaders = watchHeaders(asked[0].request.socket)
  takeLater()

  /** Not by nextTick(), which comes between two requests that were read at once if the first has a body. */
  function takeLater () {
    setImmediate(takeAll)
  }

  function takeAll () {
    const { request } = asked[asked.length - 1]
    if (isInParts(request) && !request.complete) waitForEnd(request)
    else if (isAmidHeaders()) setTimeout(takeAll, LOOK_EVERY_MS)
    else then(Buffer.concat(asked.flatMap(bytesOf)))
  }

  /** By 'readable': whoever pauses a stream keeps the app from reading it by 'data'. */
  function waitForEnd (request: Request) {
    const chunks: Buffer[] = []
    waitedFor.set(request, chunks)
    request.on('readable', keepChunks).once('end', takeLater)
    keepChunks()

    function keepChunks () {
      chunks.push(...readAll(request))
      if (chunks.reduce((sum, { length }) => sum + length, 0) <= MAX_BODY) return
      request.off('readable', keepChunks).off('end', takeLater)
      request.unshift(Buffer.concat(chunks))
      otherwise()
    }
  }

  function bytesOf ({ request, head }: Asked): Buffer[] {
    const chunks = waitedFor.get(request) ?? readAll(request)
    // Behind a request that changes the protocol nothing is parsed.
    return [headOf(request), ...isInParts(request) ? inParts(chunks, request.rawTrailers) : chunks,
      ...head ? [head, ...readAll(request.socket)] : []]
  }
}

/** @returns its first line and its headers */
function headOf ({ method, url, httpVersion, rawHeaders }: Request): Buffer {
  return fieldsOf(`${method} ${url} HTTP/${httpVersion}`, rawHeaders)
}

/** `raw`: names and values in turn */
function fieldsOf (first: string, raw: string[]) {
  const lines = [first]
  for (let at = 0; at < raw.length; at += 2) lines.push(`${raw[at]}: ${raw[at + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** @returns whether a part of a request's headers has been read, which Node shows to nobody before they are whole */
function watchHeaders ({ parser }: AnySocket): () => boolean {
  let before: unknown = null
  if (parser) {
    parser[ON_BEGIN] = () => {
      before = parser.incoming
    }
  }
  return () => before !== null && parser?.incoming === before
}

function isInParts ({ headers }: Request) {
  return headers['transfer-encoding'] !== undefined
}

function readAll (request: Readable): Buffer[] {
  const chunks = []
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk)
  return chunks
}

/** `chunks`: a whole body @returns as RFC 9112, section 7.1, has it */
function inParts (chunks: Buffer[], trailers: string[]): Buffer[] {
  return [...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, LINE_END]),
    fieldsOf('0', trailers)]
}

const LINE_END = Buffer.from('\r\n')
