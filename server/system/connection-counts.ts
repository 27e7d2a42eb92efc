import { namesIn, socketAt, textIn } from './proc.ts'
import type { SocketDiagnostics } from './socket-diagnostics.ts'

/**
 * `ports`: on which it listens, those of Unix sockets by their path; `held`: the inodes of what it listens on and of its connections, by process and
 * descriptor
 */
type Tree = { ports: Set<string>, held: Map<string, number> }
/** by inode */
type Sockets = Map<number, { port: string, isListening: boolean }>

/** A row of proc_pid_net(5). A connection has the path of the socket that has accepted it. */
const UNIX_ROW = /^\S+ \S+ \S+ (\S+) \S+ (\S+) +(\d+) (.+)$/gm
const LISTENS = 0x10000
const CONNECTED = '03'

/** How often a connection that nobody seems to have is looked for. */
const LOOKS = 2

/**
 * How many connections each program has open that have come to a port or a Unix socket on which it listens. The kernel lists the
 * sockets; whose they are is in the descriptors of the processes, of which only those are read that are new.
 */
export function createConnectionCounts (diagnostics: SocketDiagnostics) {
  /** by the pid of its first process */
  const trees: Map<number, Tree> = new Map()
  /** How often the owner of a connection was looked for. */
  let lookedFor: Map<number, number> = new Map()

  /**
   * @param programs all processes of each program, by the pid of its first one
   * @returns the open connections of those that listen
   */
  return function count (programs: ReadonlyMap<number, readonly number[]>): Map<number, number> {
    for (const pid of trees.keys()) if (!programs.has(pid)) trees.delete(pid)
    for (const pid of programs.keys()) if (!trees.has(pid)) trees.set(pid, { ports: new Set(), held: new Map() })
    const sockets = listSockets(diagnostics, new Set([...trees.values()].flatMap(({ ports }) => [...ports])))
    const mustLookAtAll = hasUnknown(sockets)
    for (const [pid, tree] of trees)
      if (mustLookAtAll || tree.ports.size === 0) look(tree, programs.get(pid) ?? [], sockets)
    return new Map(
      [...trees].filter(([, { ports }]) => ports.size > 0).map(([pid, tree]) => [pid, openOf(tree, sockets)])
    )
  }

  /** Tells whether somebody has to be looked for */
  function hasUnknown (sockets: Sockets): boolean {
    const known = new Set([...trees.values()].flatMap(({ held }) => [...held.values()]))
    const unknown: typeof lookedFor = new Map()
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

function listSockets (diagnostics: SocketDiagnostics, ports: Set<string>): Sockets {
  const sockets: Sockets = new Map()
  for (const family of [4, 6] as const) {
    diagnostics.listening({ family }, (inode, port) =>
      sockets.set(inode, { port: `${family} ${port}`, isListening: true }))
    const asked = [...ports].filter((port) => port.startsWith(`${family} `))
    // The kernel looks through all sockets, whatever is asked for.
    if (asked.length === 0) continue
    const only = asked.length === 1 ? Number(asked[0].slice(2)) : 0
    diagnostics.connected({ family, port: only }, (inode, number) => {
      const port = `${family} ${number}`
      if (ports.has(port)) sockets.set(inode, { port, isListening: false })
    })
  }
  for (const [, flags, state, inode, path] of textIn('/proc/net/unix').matchAll(UNIX_ROW)) {
    const [port, isListening] = [`unix ${path}`, (Number.parseInt(flags, 16) & LISTENS) !== 0]
    if (isListening || (state === CONNECTED && ports.has(port))) sockets.set(Number(inode), { port, isListening })
  }
  return sockets
}

function look (tree: Tree, pids: readonly number[], sockets: Sockets) {
  const held: Tree['held'] = new Map()
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

function openOf ({ ports, held }: Tree, sockets: Sockets): number {
  let open = 0
  // Processes of one program may have the same connection.
  for (const inode of new Set(held.values())) {
    const socket = sockets.get(inode)
    if (socket && !socket.isListening && ports.has(socket.port)) open++
  }
  return open
}
