import { namesIn, socketAt } from './proc.js'

/** @typedef {{ ports: Set<string>, held: Map<string, number> }} Tree `ports`: on which it listens; `held`: the inodes of what it listens on and of its connections, by process and descriptor */
/** @typedef {Map<number, { port: string, isListening: boolean }>} Sockets by inode */

/** How often a connection that nobody seems to have is looked for. */
const LOOKS = 2

/**
 * How many connections each program has open that have come to a port on which it listens. The kernel lists the sockets;
 * whose they are is in the descriptors of the processes, of which only those are read that are new.
 * @param {import('./socket-diagnostics.js').SocketDiagnostics} diagnostics
 */
export function createConnectionCounts (diagnostics) {
  /** @type {Map<number, Tree>} by the pid of its first process */
  const trees = new Map()
  /** How often the owner of a connection was looked for. @type {Map<number, number>} */
  let lookedFor = new Map()

  /**
   * @param {ReadonlyMap<number, readonly number[]>} programs  all processes of each program, by the pid of its first one
   * @returns {Map<number, number>} the open connections of those that listen
   */
  return function count (programs) {
    for (const pid of trees.keys()) if (!programs.has(pid)) trees.delete(pid)
    for (const pid of programs.keys()) if (!trees.has(pid)) trees.set(pid, { ports: new Set(), held: new Map() })
    const sockets = listSockets(diagnostics, new Set([...trees.values()].flatMap(({ ports }) => [...ports])))
    const mustLookAtAll = hasUnknown(sockets)
    for (const [pid, tree] of trees) if (mustLookAtAll || tree.ports.size === 0) look(tree, programs.get(pid) ?? [], sockets)
    return new Map([...trees].filter(([, { ports }]) => ports.size > 0).map(([pid, tree]) => [pid, openOf(tree, sockets)]))
  }

  /** @param {Sockets} sockets @returns {boolean} whether somebody has to be looked for */
  function hasUnknown (sockets) {
    const known = new Set([...trees.values()].flatMap(({ held }) => [...held.values()]))
    /** @type {typeof lookedFor} */
    const unknown = new Map()
    let isAny = false
    for (const [inode, { isListening }] of sockets) {
      if (isListening || known.has(inode)) continue
      const looks = lookedFor.get(inode) ?? 0
      isAny ||= looks < LOOKS
      unknown.set(inode, looks + 1)
    }
    lookedFor = unknown
    return isAny
  }
}

/** @param {import('./socket-diagnostics.js').SocketDiagnostics} diagnostics @param {Set<string>} ports @returns {Sockets} */
function listSockets (diagnostics, ports) {
  /** @type {Sockets} */
  const sockets = new Map()
  for (const family of /** @type {const} */ ([4, 6])) {
    diagnostics.listening({ family }, (inode, port) => sockets.set(inode, { port: `${family} ${port}`, isListening: true }))
    const asked = [...ports].filter((port) => port.startsWith(`${family} `))
    // The kernel looks through all sockets, whatever is asked for.
    if (asked.length === 0) continue
    const only = asked.length === 1 ? Number(asked[0].slice(2)) : 0
    diagnostics.connected({ family, port: only }, (inode, number) => {
      const port = `${family} ${number}`
      if (ports.has(port)) sockets.set(inode, { port, isListening: false })
    })
  }
  return sockets
}

/** @param {Tree} tree @param {readonly number[]} pids @param {Sockets} sockets */
function look (tree, pids, sockets) {
  /** @type {Tree['held']} */
  const held = new Map()
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`
    for (const name of namesIn(folder)) {
      const place = `${pid} ${name}`
      const before = tree.held.get(place)
      // As long as a socket is there, its descriptor is hardly another one's.
      const inode = before !== undefined && sockets.has(before) ? before : socketAt(`${folder}/${name}`)
      if (sockets.has(inode)) held.set(place, inode)
    }
  }
  tree.held = held
  tree.ports = new Set([...held.values()].flatMap((inode) => {
    const socket = sockets.get(inode)
    return socket?.isListening ? [socket.port] : []
  }))
}

/** @param {Tree} tree @param {Sockets} sockets @returns {number} */
function openOf ({ ports, held }, sockets) {
  let open = 0
  // Processes of one program may have the same connection.
  for (const inode of new Set(held.values())) {
    const socket = sockets.get(inode)
    if (socket && !socket.isListening && ports.has(socket.port)) open++
  }
  return open
}
