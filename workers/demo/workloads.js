/** @typedef {import('node:http').ServerResponse} ServerResponse */

const CHUNK = Buffer.alloc(65_536, 'clusterdeck ')

/** @type {Buffer[]} what `leak` has kept so far */
const kept = []

/**
 * The naive way, on purpose: it keeps a CPU busy for about 10 ms at n = 30.
 * @param {number} n
 * @returns {number}
 */
export function fibonacci (n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
}

/**
 * A loop that the compiler cannot do away with.
 * @param {number} loops
 */
export function burnCpu (loops) {
  let sum = 0
  for (let count = 0; count < loops; count++) sum = (sum + count * 31) % 1_000_003
  return sum
}

/**
 * Exactly so many bytes, sent no faster than the client reads.
 * @param {ServerResponse} response
 * @param {number} bytes
 */
export function sendPayload (response, bytes) {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes })
  let left = bytes
  const writeChunks = () => {
    while (left > 0) {
      const chunk = left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK
      left -= chunk.length
      if (!response.write(chunk)) {
        response.once('drain', writeChunks)
        return
      }
    }
    response.end()
  }
  writeChunks()
}

/**
 * Lines over time, as from a long report.
 * @param {ServerResponse} response
 * @param {{ chunks: number, everyMs: number }} options
 */
export function streamLines (response, { chunks, everyMs }) {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  let sent = 0
  const writeNext = () => {
    if (response.destroyed) return
    if (sent === chunks) {
      response.end()
      return
    }
    response.write(`${JSON.stringify({ chunk: ++sent, of: chunks, pid: process.pid })}\n`)
    setTimeout(writeNext, everyMs)
  }
  writeNext()
}

/**
 * Never gives the event loop back: this worker answers nobody any more, and only SIGKILL ends it.
 * @returns {never}
 */
export function hangForever () {
  for (;;);
}

/**
 * Keeps memory for good.
 * @param {number} bytes
 */
export function leakMemory (bytes) {
  // Filled, because the system hands out pages of zeros only once they are written to.
  kept.push(Buffer.alloc(bytes, 1))
  return { keptBytes: kept.reduce((sum, { length }) => sum + length, 0) }
}
