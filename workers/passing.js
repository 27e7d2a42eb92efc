import { closeSync, openSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { removeSocket } from './socket-file.js'

/** As Node has it: the one of this worker tells the master of every server. */
const { listen } = net.Server.prototype
/** A pipe that takes descriptors along: PipeConstants.IPC of Node. */
const WITH_DESCRIPTORS = 2
/** A message begins with the lengths of the key and of the bytes that follow. */
const HEAD = 8
const FLUSH_EVERY_MS = 1

/** @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {ReturnType<typeof createPassing>} Passing */
/** @typedef {{ fd: number, rest: Buffer | null, timer?: NodeJS.Timeout }} Peer  `rest`: what it could not take at once */

/**
 * Passes connections from worker to worker, as descriptors over a Unix socket that each worker has in a folder of this deck.
 * Nobody else stands between, and no byte of what the client says is lost: what this worker has read already goes along.
 * @param {object} parts
 * @param {string} parts.folder  that others cannot enter
 * @param {number} parts.worker  this one
 * @param {import('./connection-calls.js').ConnectionCalls} parts.calls
 * @param {(passed: { key: string, bytes: Buffer, handle: SocketHandle }) => void} parts.onPassed  `key`: of the listening socket that the client has connected to
 * @param {(error: Error) => void} parts.onProblem  no worker can pass any to this one
 */
export function createPassing ({ folder, worker, calls, onPassed, onProblem }) {
  // A path of a Unix socket has at most 107 characters.
  const folderFd = openSync(folder, 'r')
  const pathOf = (/** @type {number} */ id) => `/proc/self/fd/${folderFd}/${id}`
  /** @type {Map<number, Peer>} */
  const peers = new Map()
  /** @type {Set<net.Socket>} */
  const incoming = new Set()
  const server = net.createServer({ pauseOnConnect: true }, takePeer)
  server.on('error', onProblem)
  listenAlone(server, pathOf(worker))

  return {
    /**
     * @param {number} to a worker @param {{ key: string, bytes?: Buffer, fd: number }} connection  stays open here
     * @returns {'passed' | 'busy' | 'gone'} `busy`: it may take it a little later
     */
    pass (to, { key, bytes = NOTHING, fd }) {
      const peer = peers.get(to) ?? reach(to)
      if (!peer) return 'gone'
      if (peer.rest) return 'busy'
      const message = encode(key, bytes)
      const sent = calls.sendAlong(peer.fd, message, fd)
      if (sent > 0) {
        sendRest(to, peer, message.subarray(sent))
        return 'passed'
      }
      if (sent === 0) return 'busy'
      forget(to, peer)
      // That was the connection to a worker of the same number that has ended.
      return reach(to) ? 'busy' : 'gone'
    },

    /** @param {number} to @returns {boolean} whether that worker is there */
    isThere: (to) => peers.has(to) || reach(to) !== null,

    /** No connections come any more but those that are on their way. */
    close () {
      server.close()
      for (const socket of incoming) if (socket._handle) calls.takeNoMore(socket._handle.fd)
    }
  }

  /** @param {number} to @returns {Peer | null} */
  function reach (to) {
    const fd = calls.connect(pathOf(to))
    if (fd === null) return null
    const peer = { fd, rest: null }
    peers.set(to, peer)
    return peer
  }

  /** @param {number} to @param {Peer} peer @param {Buffer} bytes */
  function sendRest (to, peer, bytes) {
    const sent = bytes.length === 0 ? 0 : calls.send(peer.fd, bytes)
    if (sent === -1) return forget(to, peer)
    peer.rest = sent < bytes.length ? bytes.subarray(sent) : null
    if (peer.rest) peer.timer = setTimeout(sendRest, FLUSH_EVERY_MS, to, peer, peer.rest)
  }

  /** @param {number} to @param {Peer} peer */
  function forget (to, { fd, timer }) {
    clearTimeout(timer)
    calls.close(fd)
    peers.delete(to)
  }

  /** @param {net.Socket} socket  of another worker */
  function takePeer (socket) {
    const fd = socket._handle?.fd ?? -1
    const user = calls.userOf(fd)
    if (user !== 0 && user !== process.getuid?.()) return socket.destroy()
    // What Node has accepted is a pipe that takes no descriptors along.
    const handle = openPipe(server, calls.duplicate(fd))
    socket.destroy()
    if (handle) readPassed(handle)
  }

  /** @param {PassingHandle} handle */
  function readPassed (handle) {
    const peer = new net.Socket(/** @type {net.SocketConstructorOpts} */ ({ handle }))
    /** @type {SocketHandle[]} */
    const handles = []
    let bytes = NOTHING
    incoming.add(peer)
    peer.unref()
    peer.on('data', (chunk) => {
      if (handle.pendingHandle) handles.push(handle.pendingHandle)
      handle.pendingHandle = undefined
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      for (let message = decode(bytes); message; message = decode(bytes)) {
        bytes = bytes.subarray(message.length)
        const passed = handles.shift()
        if (passed) onPassed({ key: message.key, bytes: message.bytes, handle: passed })
      }
    })
    // ECONNRESET: that worker is gone.
    peer.on('error', () => {})
    peer.once('close', () => {
      incoming.delete(peer)
      for (const each of handles) each.close()
    })
  }
}

/** @typedef {SocketHandle & { open (fd: number): number, pendingHandle?: SocketHandle }} PassingHandle */

const NOTHING = Buffer.alloc(0)

/** @param {string} key @param {Buffer} bytes */
function encode (key, bytes) {
  const name = Buffer.from(key)
  const message = Buffer.allocUnsafe(HEAD + name.length + bytes.length)
  message.writeUInt32BE(name.length, 0)
  message.writeUInt32BE(bytes.length, 4)
  name.copy(message, HEAD)
  bytes.copy(message, HEAD + name.length)
  return message
}

/** @param {Buffer} message @returns {{ key: string, bytes: Buffer, length: number } | null} null: it is not whole yet */
function decode (message) {
  if (message.length < HEAD) return null
  const start = HEAD + message.readUInt32BE(0)
  const length = start + message.readUInt32BE(4)
  return message.length < length ? null : { key: message.toString('utf8', HEAD, start), bytes: message.subarray(start, length), length }
}

/** @param {net.Server} server  of Unix sockets @param {number} fd @returns {PassingHandle | null} */
function openPipe (server, fd) {
  const Pipe = /** @type {{ constructor: new (type: number) => PassingHandle }} */ (/** @type {unknown} */ (server._handle)).constructor
  const handle = new Pipe(WITH_DESCRIPTORS)
  if (handle.open(fd) === 0) return handle
  closeSync(fd)
  return null
}

/** Removes what a worker has listened on that has ended. @param {string} folder @param {number} worker */
export function removePassingSocket (folder, worker) {
  removeSocket(path.join(folder, String(worker)))
}

/** Outside the cluster, whose master knows nothing of this socket. @param {net.Server} server @param {string} place */
function listenAlone (server, place) {
  removeSocket(place)
  Reflect.apply(listen, server, [{ path: place, exclusive: true }])
  server.unref()
}
