import { randomBytes } from 'node:crypto'
import http from 'node:http'

/** @typedef {Awaited<ReturnType<typeof connectInspector>>} InspectorClient */

/** One message; a stack of 50 frames with its scopes is far below. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024
const TEXT = 1
const CLOSE = 8

/**
 * Just enough of a WebSocket client (RFC 6455) for the inspector of a worker: text frames that are not split.
 * @param {number} port @param {string} path @param {{ timeoutMs: number }} options for the connection
 */
export async function connectInspector (port, path, { timeoutMs }) {
  const { socket, head } = await upgrade(port, path, timeoutMs)
  /** @type {(message: any) => void} */
  let deliver = () => {}
  let rest = head
  let lastId = 0
  // ECONNRESET: the process was killed; whoever waits for an answer has a deadline.
  socket.on('error', () => {}).on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (let frame = readFrame(rest); frame; frame = readFrame(rest)) {
      rest = rest.subarray(frame.length)
      if (frame.opcode === TEXT) deliver(JSON.parse(frame.payload.toString()))
      if (frame.opcode === CLOSE) socket.destroy()
    }
    if (rest.length > MAX_FRAME_BYTES) socket.destroy()
  })

  return {
    /** @param {string} method @param {Record<string, unknown>} [params] */
    send (method, params = {}) { socket.write(maskedFrame(JSON.stringify({ id: ++lastId, method, params }))) },
    /** @param {(message: any) => void} listener answers and events of the inspector protocol */
    onMessage (listener) { deliver = listener },
    close () { socket.destroy() }
  }
}

/** @param {number} port @param {string} path @param {number} timeoutMs @returns {Promise<{ socket: import('node:stream').Duplex, head: Buffer }>} */
function upgrade (port, path, timeoutMs) {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': randomBytes(16).toString('base64') }
    const request = http.get({ host: '127.0.0.1', port, path, headers, agent: false, timeout: timeoutMs })
      .on('upgrade', (_response, socket, head) => resolve({ socket, head }))
      .on('response', ({ statusCode }) => reject(new Error(`the inspector answers ${statusCode}`)))
      .on('timeout', () => request.destroy(new Error('the inspector does not answer')))
      .on('error', reject)
  })
}

/** @param {Buffer} bytes @returns {{ opcode: number, payload: Buffer, length: number } | null} null: not all of it is there yet */
function readFrame (bytes) {
  if (bytes.length < 2) return null
  const short = bytes[1] & 0x7f
  const headLength = short === 127 ? 10 : short === 126 ? 4 : 2
  if (bytes.length < headLength) return null
  const size = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
  if (bytes.length < headLength + size) return null
  return { opcode: bytes[0] & 0x0f, payload: bytes.subarray(headLength, headLength + size), length: headLength + size }
}

/** @param {string} text @returns {Buffer} a client has to mask what it sends */
function maskedFrame (text) {
  const payload = Buffer.from(text)
  if (payload.length > 125) throw new RangeError('only short messages are sent to an inspector')
  const mask = randomBytes(4)
  return Buffer.concat([Buffer.from([0x80 | TEXT, 0x80 | payload.length]), mask, payload.map((byte, index) => byte ^ mask[index % 4])])
}
