import { setImmediate } from 'node:timers'

/** The events by which a server passes on what a client asks for; the request comes first. @type {ReadonlySet<string | symbol>} */
export const ASKED = new Set(['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect'])

/** A body that comes in parts of unknown length is kept until it is whole; one that is longer than this is not. */
const MAX_BODY = 1024 * 1024

/** @typedef {import('node:http').IncomingMessage} Request */
/** @typedef {{ request: Request, head: Buffer | null }} Asked  `head`: what has been read behind a request that changes the protocol */

/**
 * What a client has asked on a connection, as the bytes that it has sent, so that another process can be asked the same on
 * that connection. Nothing more is read from it here.
 * @param {Asked[]} asked  whose headers have just been read, and which nobody has yet. What is asked meanwhile is added to it
 * @param {(bytes: Buffer) => void} then  what has been read of all; the rest is to be read from the connection
 * @param {() => void} otherwise  the newest is too long; nothing of it is lost
 */
export function takeBack (asked, then, otherwise) {
  /** Bodies in parts that had to be waited for. @type {Map<Request, Buffer[]>} */
  const waitedFor = new Map()
  takeLater()

  /** Not by nextTick(), which comes between two requests that were read at once if the first has a body. */
  function takeLater () { setImmediate(takeAll) }

  function takeAll () {
    const { request } = asked[asked.length - 1]
    if (isInParts(request) && !request.complete) waitForEnd(request)
    else then(Buffer.concat(asked.flatMap(bytesOf)))
  }

  /** By 'readable': whoever pauses a stream keeps the app from reading it by 'data'. @param {Request} request */
  function waitForEnd (request) {
    /** @type {Buffer[]} */
    const chunks = []
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

  /** @param {Asked} one @returns {Buffer[]} */
  function bytesOf ({ request, head }) {
    const chunks = waitedFor.get(request) ?? readAll(request)
    // Behind a request that changes the protocol nothing is parsed.
    return [headOf(request), ...isInParts(request) ? inParts(chunks, request.rawTrailers) : chunks, ...head ? [head, ...readAll(request.socket)] : []]
  }
}

/** @param {Request} request @returns {Buffer} its first line and its headers */
function headOf ({ method, url, httpVersion, rawHeaders }) {
  return fieldsOf(`${method} ${url} HTTP/${httpVersion}`, rawHeaders)
}

/** @param {string} first @param {string[]} raw  names and values in turn */
function fieldsOf (first, raw) {
  const lines = [first]
  for (let at = 0; at < raw.length; at += 2) lines.push(`${raw[at]}: ${raw[at + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** @param {Request} request */
function isInParts ({ headers }) {
  return headers['transfer-encoding'] !== undefined
}

/** @param {import('node:stream').Readable} request @returns {Buffer[]} */
function readAll (request) {
  const chunks = []
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk)
  return chunks
}

/** @param {Buffer[]} chunks  a whole body @param {string[]} trailers @returns {Buffer[]} as RFC 9112, section 7.1, has it */
function inParts (chunks, trailers) {
  return [...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, LINE_END]), fieldsOf('0', trailers)]
}

const LINE_END = Buffer.from('\r\n')
