/** The events by which a server passes on what a client asks for; the request comes first. @type {ReadonlySet<string | symbol>} */
export const ASKED = new Set(['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect'])

/** A body that comes in parts of unknown length is kept until it is whole; one that is longer than this is not. */
const MAX_BODY = 1024 * 1024

/** @typedef {import('node:http').IncomingMessage} Request */

/**
 * What a client has asked on a connection, as the bytes that it has sent, so that another process can be asked the same on
 * that connection. Nothing more is read from it here.
 * @param {Request} request  its headers have just been read, and nobody has it yet
 * @param {(bytes: Buffer) => void} then  what has been read of it; the rest is to be read from the connection
 * @param {() => void} otherwise  it is too long; nothing of it is lost
 */
export function takeBack (request, then, otherwise) {
  // What has come together with the headers is parsed by then.
  process.nextTick(() => {
    if (!isInParts(request)) return then(Buffer.concat([headOf(request), ...readAll(request)]))
    const chunks = readAll(request)
    if (request.complete) return then(Buffer.concat([headOf(request), ...inParts(chunks)]))
    let length = 0
    request.on('data', keepChunk).once('end', finish)

    function keepChunk (/** @type {Buffer} */ chunk) {
      chunks.push(chunk)
      length += chunk.length
      if (length <= MAX_BODY) return
      request.off('data', keepChunk).off('end', finish).pause()
      request.unshift(Buffer.concat(chunks))
      otherwise()
    }

    function finish () { then(Buffer.concat([headOf(request), ...inParts(chunks)])) }
  })
}

/** @param {Request} request @returns {Buffer} its first line and its headers */
export function headOf ({ method, url, httpVersion, rawHeaders }) {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** @param {Request} request */
function isInParts ({ headers }) {
  return headers['transfer-encoding'] !== undefined
}

/** @param {Request} request @returns {Buffer[]} */
function readAll (request) {
  const chunks = []
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk)
  return chunks
}

/** @param {Buffer[]} chunks  a whole body @returns {Buffer[]} as RFC 9112, section 7.1, has it */
function inParts (chunks) {
  return [...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, LINE_END]), Buffer.from('0\r\n\r\n')]
}

const LINE_END = Buffer.from('\r\n')
