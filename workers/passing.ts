import { closeSync, openSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { removeSocket } from './socket-file.ts'
import type { SocketHandle } from './node-internals.d.ts'
import type { ConnectionCalls } from './connection-calls.ts'

/** As Node has it: the one of this worker tells the master of every server. */
const { listen } = net.Server.prototype
/** A pipe that takes descriptors along: PipeConstants.IPC of Node. */
const WITH_DESCRIPTORS = 2
/** A message begins with the lengths of the key and of the bytes that follow. */
const HEAD = 8
const FLUSH_EVERY_MS = 1

export type Passing = ReturnType<typeof createPassing>
/** `rest`: what it could not take at once */
type Peer = { fd: number, rest: Buffer | null, timer?: NodeJS.Timeout }

/**
 * Passes connections from worker to worker, as descriptors over a Unix socket that each worker has in a folder of this
 * deck. Nobody else stands between, and no byte of what the client says is lost: what this worker has read already goes
 * along.
 */
export function createPassing ({ folder, worker, calls, onPassed, onProblem }: {
  /** that others cannot enter */
  folder: string,
  /** this one */
  worker: number,
  calls: ConnectionCalls,
  /** `key`: of the listening socket that the client has connected to */
  onPassed: (passed: { key: string, bytes: Buffer, handle: SocketHandle }) => void,
  /** no worker can pass any to this one */
  onProblem: (error: Error) => void
}) {
  // A path of a Unix socket has at most 107 characters.
  const folderFd = openSync(folder, 'r')
  const pathOf = (id: number) => `/proc/self/fd/${folderFd}/${id}`
  const peers: Map<number, Peer> = new Map()
  const incoming: Set<net.Socket> = new Set()
  const server = net.createServer({ pauseOnConnect: true }, takePeer)
  server.on('error', onProblem)
  listenAlone(server, pathOf(worker))

  return {
    /** `to`: a worker; `connection`: stays open here. Returns `busy`: it may take it a little later. */
    pass (to: number, { key, bytes = NOTHING, fd }: { key: string, bytes?: Buffer, fd: number }): 'passed' | 'busy'
      | 'gone'
    {
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

    /** Tells whether that worker is there */
    isThere: (to: number): boolean => peers.has(to) || reach(to) !== null,

    /** @returns how many workers have taken a part of something so far */
    halfway: (): number => [...peers.values()].filter(({ rest }) => rest).length,

    /** No connections come any more but those that are on their way. */
    close () {
      server.close()
      for (const socket of incoming) if (socket._handle) calls.takeNoMore(socket._handle.fd)
    }
  }

  function reach (to: number): Peer | null {
    const fd = calls.connect(pathOf(to))
    if (fd === null) return null
    const peer = { fd, rest: null }
    peers.set(to, peer)
    return peer
  }

  function sendRest (to: number, peer: Peer, bytes: Buffer) {
    const sent = bytes.length === 0 ? 0 : calls.send(peer.fd, bytes)
    if (sent === -1) return forget(to, peer)
    peer.rest = sent < bytes.length ? bytes.subarray(sent) : null
    if (peer.rest) peer.timer = setTimeout(sendRest, FLUSH_EVERY_MS, to, peer, peer.rest)
  }

  function forget (to: number, { fd, timer }: Peer) {
    clearTimeout(timer)
    calls.close(fd)
    peers.delete(to)
  }

  /** `socket`: of another worker */
  function takePeer (socket: net.Socket) {
    const fd = socket._handle?.fd ?? -1
    const user = calls.userOf(fd)
    if (user !== 0 && user !== process.getuid?.()) return socket.destroy()
    // What Node has accepted is a pipe that takes no descriptors along.
    const handle = openPipe(server, calls.duplicate(fd))
    socket.destroy()
    if (handle) readPassed(handle)
  }

  function readPassed (handle: PassingHandle) {
    const peer = new net.Socket({ handle })
    const handles: SocketHandle[] = []
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

type PassingHandle = SocketHandle & { open(fd: number): number, pendingHandle?: SocketHandle }

const NOTHING = Buffer.alloc(0)

function encode (key: string, bytes: Buffer) {
  const name = Buffer.from(key)
  const message = Buffer.allocUnsafe(HEAD + name.length + bytes.length)
  message.writeUInt32BE(name.length, 0)
  message.writeUInt32BE(bytes.length, 4)
  name.copy(message, HEAD)
  bytes.copy(message, HEAD + name.length)
  return message
}

/** Null: it is not whole yet */
function decode (message: Buffer): { key: string, bytes: Buffer, length: number } | null {
  if (message.length < HEAD) return null
  const start = HEAD + message.readUInt32BE(0)
  const length = start + message.readUInt32BE(4)
  return message.length < length
    ? null
    : { key: message.toString('utf8', HEAD, start), bytes: message.subarray(start, length), length }
}

/** `server`: of Unix sockets */
function openPipe (server: net.Server, fd: number): PassingHandle | null {
  const Pipe = (server._handle as unknown as { constructor: new(type: number) => PassingHandle }).constructor
  const handle = new Pipe(WITH_DESCRIPTORS)
  if (handle.open(fd) === 0) return handle
  closeSync(fd)
  return null
}

/** Removes what a worker has listened on that has ended. */
export function removePassingSocket (folder: string, worker: number) {
  removeSocket(path.join(folder, String(worker)))
}

/** Outside the cluster, whose master knows nothing of this socket. */
function listenAlone (server: net.Server, place: string) {
  removeSocket(place)
  Reflect.apply(listen, server, [{ path: place, exclusive: true }])
  server.unref()
}
