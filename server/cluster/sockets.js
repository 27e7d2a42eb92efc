import dgram from 'node:dgram'
import net from 'node:net'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { handleOf, isDescriptor } from '../../workers/descriptor.js'
import { isUdp, placeOfKey, socketKey } from '../../workers/protocol.js'
import { holderText } from '../programs/holder.js'
import { createInherited } from './activated.js'
import { createGiven } from './given.js'
import { baseOf, createUnixGenerations } from './unix-generations.js'
import { bindUnixPath, findUnixPath } from './unix-path.js'

/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */

/**
 * How long a socket that no worker uses any more stays open: a worker that an operator ends by hand closes its servers
 * before its replacement asks for them.
 */
const UNUSED_GRACE_MS = 30_000
/** The same once every slot is served: a ready worker may still open a second port a little later. */
const UNASKED_GRACE_MS = 5_000

/**
 * The socket broker. The master binds each address once, without listening on it, and hands the same handle to every
 * worker that asks; the kernel's queue lives as long as one of them has it. Binding here, as node:cluster's own
 * primary does, leaves no first worker whose end would unlink a Unix socket's path.
 * @param {object} options
 * @param {(error: BindError) => boolean} options.onBindError  returns whether the worker is to wait, because the master is about to end everything
 * @param {(sockets: string[]) => void} [options.onUnused]  the service manager's that no worker has asked for
 * @param {Keeper} [options.keeper]  has a copy of every socket, those of the master before, and the service manager's
 * @param {typeof bindSocket} [options.bind]
 * @param {import('./sticky.js').Sticky | import('./steering.js').Steering | null} [options.own]  where each slot or each worker has a socket of its own
 * @param {typeof import('./unix-staging.js').stageUnixPath | null} [options.stage]  how Unix sockets are bound whose workers do not drain by themselves
 * @param {import('./unix-generations.js').Generations} [options.generations]
 * @param {number} [options.unusedGraceMs]
 * @param {number} [options.unaskedGraceMs]
 */
export function createSockets ({
  onBindError, onUnused = () => {}, keeper = NO_KEEPER, bind = bindSocket, own = null, stage = null, generations = ONE_GENERATION,
  unusedGraceMs = UNUSED_GRACE_MS, unaskedGraceMs = UNASKED_GRACE_MS
}) {
  /** @type {Map<string, Socket>} */
  const held = new Map()
  /** Ready workers; the addresses on which they listen are meant to last. @type {Set<number>} */
  const ready = new Set()
  for (const [name, { handle, data: kept }] of keeper.held) {
    if (!name.startsWith(KEEPER_PREFIX) || !kept || 'fd' in kept) continue
    const key = name.slice(KEEPER_PREFIX.length)
    const path = kept.path && findUnixPath(kept.path)
    if (path === null) {
      // Nobody can reach this socket any more; the next request for the path gets a new one.
      handle.close()
      keeper.drop(name)
      continue
    }
    held.set(key, { ...kept, path, handle, query: placeOfKey(baseOf(key)), isEstablished: true, users: new Set() })
  }
  for (const [key, members] of groupsOf(keeper.held)) {
    const handles = members.map(({ handle }) => handle)
    const socket = { data: members[0].data?.data, query: placeOfKey(key), users: new Set() }
    if (own) held.set(key, { ...socket, handle: handles[0], group: own.adopt(key, handles), kept: handles.length, isEstablished: true })
    else held.set(key, { ...socket, handle: ungroupSockets(key, handles), isEstablished: false })
  }
  const inherited = createInherited(keeper)
  const given = createGiven(keeper)
  let isClosed = false
  const unix = createUnixGenerations({ held, ready, stage, generations, drop: dropSocket, expire: (key) => expireSocket(key, unaskedGraceMs), isClosed: () => isClosed })

  return {
    /**
     * @param {number} worker @param {SocketQuery} query
     * @returns {boolean} whether another starting worker holds the address, perhaps only to test whether it is free
     */
    isContended: (worker, query) => !held.has(socketKey(query)) && findRival(worker, query)?.isEstablished === false,

    /**
     * @param {number} worker @param {{ query: SocketQuery, data?: unknown, slot?: number }} request
     * @returns {Omit<import('../../workers/protocol.js').SocketReply, 'type' | 'seq'> & { handle?: Handle, keeping?: Promise<unknown>, until?: Promise<void> }}
     *   `keeping`: until the keeper cannot lose the socket any more; the worker is to be told only then, as the next master would count the
     *   sockets of the address otherwise than the kernel if it did not know one that a worker has; `until`: it has to be asked again then
     */
    request (worker, { query, data, slot = 1 }) {
      const { key, until, errno: pathErrno } = unix.place(socketKey(query), { worker, query })
      if (until) return { key, until }
      if (pathErrno) return { key, errno: pathErrno, awaitMaster: onBindError(describeBindError(query, pathErrno)) }
      let socket = held.get(key)
      if (!socket) {
        if (findRival(worker, query)?.isEstablished) return { key, isPlaceholder: true }
        const ofOther = isClosed ? null : given.match(query)
        const found = isClosed ? { errno: ECANCELED } : ofOther ?? inherited.match(query)
        if (!found && isDescriptor(query)) return { key, isWorkersOwn: true }
        const begun = found ? null : unix.begin(key, query)
        if (begun) return { key, until: begun }
        const bound = found ?? bindGroup(key, query) ?? bind(query)
        if (bound.errno !== undefined) return { key, errno: bound.errno, awaitMaster: onBindError(describeBindError(query, bound.errno)) }
        const { errno, ...whose } = bound
        socket = { ...whose, query, data, isEstablished: false, users: new Set() }
        held.set(key, socket)
        // Nobody could bind it again, so a worker that only tests whether the address is free does not free it.
        if (ofOther) keepSocket(key, socket)
      }
      clearTimeout(socket.unusedTimer)
      socket.users.add(worker)
      if (ready.has(worker) || socket.inherited !== undefined) keepSocket(key, socket)
      if (!socket.group) return { key, handle: socket.handle, data: socket.data }
      const { errno, handle } = socket.group.member(own?.numberFor(key, { worker, slot }) ?? 1)
      lookAtGroups()
      return errno === undefined ? { key, handle, data: socket.data, isOwn: true, ...(socket.keeping && { keeping: socket.keeping }) } : { key, errno }
    },

    /** A worker has come or gone. */
    look () {
      lookAtGroups()
      if (!isClosed) unix.look()
    },

    /** @param {number} worker @returns {number} how many connections wait until it accepts them, at sockets that no other worker will serve */
    queueOf: (worker) => (own?.queueOf(worker) ?? 0) + unix.queueOf(worker),

    /** @param {number} inode of a Unix socket @returns {net.Socket | null} a connection to it, whatever its path leads to */
    connect: unix.connect,

    /** @returns {{ file: string, dev: number, ino: number }[]} Unix sockets whose names none of the workers may remove */
    unixPaths: () => [...[...held.values()].flatMap(({ path }) => path ? [path.memory] : []), ...given.files()],

    /** @param {number} worker @returns {{ key: string, address: string | null, addressType: number | string } | null} the TCP port that it asked for first */
    listensOn (worker) {
      for (const [key, { users, query: { address, port, addressType } }] of held) {
        if (users.has(worker) && isTcpPort({ port, addressType })) return { key, address, addressType }
      }
      return null
    },

    /**
     * @param {number} worker is ready; the addresses on which it listens stay for its successors
     * @returns {Promise<unknown> | void} resolves when they do, whatever becomes of this process; nothing: they do already
     */
    establish (worker) {
      ready.add(worker)
      const keeping = [...held].flatMap(([key, socket]) => {
        if (!socket.users.has(worker)) return []
        delete socket.isAdopted
        socket.group?.listen()
        keepSocket(key, socket)
        return socket.keeping ?? []
      })
      return keeping.length > 0 ? Promise.all(keeping) : undefined
    },

    /** @returns {string[]} names of all bound sockets */
    names: () => [...held.keys()],

    /** @param {number} worker its app has closed the server on purpose */
    release (worker, /** @type {string} */ key) {
      const socket = held.get(key)
      if (!socket?.users.delete(worker)) return
      own?.release(key, worker)
      lookAtGroups()
      // It has only tested whether the address is free, and needs it free again.
      if (isUnused(key) && (!socket.isEstablished || unix.isHidden(key, socket))) dropSocket(key)
      else expireSocket(key)
    },

    /** @returns {import('./given.js').GivenPlace[]} where a program serves whose place the app takes, and no worker has asked to */
    unclaimed: given.left,

    /** Connections to these would wait for ever. */
    closeUnclaimed: given.close,

    /** All workers have their sockets now: unused ones are closed, as connections to them would wait forever. */
    expireUnused () {
      for (const key of held.keys()) expireSocket(key, unaskedGraceMs)
      const unused = inherited.unused(new Set([...held.values()].map((socket) => socket.inherited)))
      if (unused.length > 0) onUnused(unused)
    },

    /** Frees sockets without a worker at once. */
    closeUnused () {
      for (const key of [...held.keys()]) if (isUnused(key)) dropSocket(key)
    },

    /** @param {SocketQuery} query @param {number} errno @returns {BindError} in words, with what is known of the cause */
    explain (query, errno) {
      const error = describeBindError(query, errno)
      return errno === EADDRINUSE ? { ...error, message: error.message + (inherited.hint(query) || holderHint(query)) } : error
    },

    /** @param {number} worker is gone; its sockets stay for its successor */
    forget (worker) {
      ready.delete(worker)
      for (const { users } of held.values()) users.delete(worker)
      unix.dropUnused(isUnused)
    },

    /** The cluster ends: later connections are refused instead of left waiting. */
    close () {
      isClosed = true
      for (const key of [...held.keys()]) dropSocket(key)
      inherited.close()
      given.close()
    },

    /** Those that are meant to last stay open, for whoever makes this cluster anew in this process, and has them from its keeper. */
    letGo () {
      isClosed = true
      for (const [key, socket] of [...held]) {
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (socket.isEstablished) socket.path?.leave()
        else dropSocket(key)
      }
      held.clear()
    },

    /** Another master has these sockets now. */
    leave () {
      isClosed = true
      for (const [key, socket] of [...held]) {
        if (socket.isShown === false) dropSocket(key)
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (held.has(key)) closeHandles(socket)
        if (held.has(key)) socket.path?.leave()
      }
      held.clear()
      inherited.close()
    }
  }

  /** Only now the keeper gets a copy, as a worker that tests for a free port has to find it free again. @param {string} key @param {Socket} socket */
  function keepSocket (key, socket) {
    if (socket.isEstablished) return
    socket.isEstablished = true
    if (socket.group) return keepMembers(key, socket)
    const { handle, data, path, inherited: fd } = socket
    const sent = keeper.hold(KEEPER_PREFIX + key, handle, { data, ...(path && { path: path.memory }), ...(fd !== undefined && { inherited: fd }) })
    if (sent) awaitKeeper(socket, [sent])
  }

  /** @param {string} key @param {Socket} socket of a group, which has as many members as there are slots */
  function keepMembers (key, socket) {
    const { group, data, kept = 0 } = socket
    const handles = group?.handles() ?? []
    const sent = handles.slice(kept).map((handle, index) => keeper.hold(memberName(key, kept + index + 1), handle, { data })).filter(Boolean)
    if (sent.length > 0) awaitKeeper(socket, sent)
    for (let slot = handles.length + 1; slot <= kept; slot++) keeper.drop(memberName(key, slot))
    socket.kept = handles.length
  }

  /** Remembers what is on its way to the keeper. @param {Socket} socket @param {unknown[]} sent */
  function awaitKeeper (socket, sent) {
    const keeping = Promise.all([socket.keeping, ...sent]).then(() => { if (socket.keeping === keeping) delete socket.keeping })
    socket.keeping = keeping
  }

  /** @param {string} key @param {SocketQuery} query @returns {{ handle: SocketHandle, group: SocketGroup, errno?: undefined } | { errno: number } | null} */
  function bindGroup (key, query) {
    if (!own || !isTcpPort(query)) return null
    const group = own.bind(key, query)
    return 'errno' in group ? group : { handle: group.handle, group }
  }

  /** Where nobody has a socket of its own, all workers share the first one of a group. @param {string} key @param {SocketHandle[]} handles */
  function ungroupSockets (key, [first, ...others]) {
    for (const handle of others) handle.close()
    for (let slot = 1; slot <= others.length + 1; slot++) keeper.drop(memberName(key, slot))
    return first
  }

  function lookAtGroups () {
    if (!own || isClosed) return
    own.look((key) => held.get(key)?.users ?? new Set())
    for (const [key, socket] of held) if (socket.group && socket.isEstablished) keepMembers(key, socket)
  }

  /** @param {string} key @param {number} [graceMs] */
  function expireSocket (key, graceMs = unusedGraceMs) {
    const socket = held.get(key)
    if (!socket || !isUnused(key)) return
    clearTimeout(socket.unusedTimer)
    socket.unusedTimer = setTimeout(() => dropSocket(key), graceMs).unref()
  }

  /** @param {string} key @returns {boolean} false for the service manager's sockets, which nobody could bind again */
  function isUnused (key) {
    const socket = held.get(key)
    return socket !== undefined && socket.users.size === 0 && socket.inherited === undefined
  }

  /**
   * Finds a conflict that the kernel would only report once both sockets listen.
   * @param {number} worker is starting @param {SocketQuery} query
   * @returns {Socket | undefined} another worker's socket that covers this address
   */
  function findRival (worker, query) {
    if (ready.has(worker)) return undefined
    for (const [key, socket] of [...held]) if (!socket.isEstablished && isUnused(key) && placesOverlap(socket.query, query)) dropSocket(key)
    return [...held.values()].find((socket) => !socket.users.has(worker) && placesOverlap(socket.query, query))
  }

  /** @param {string} key */
  function dropSocket (key) {
    const socket = held.get(key)
    held.delete(key)
    if (!socket) return
    if (socket.isEstablished && !socket.group) keeper.drop(KEEPER_PREFIX + key)
    for (let slot = 1; slot <= (socket.kept ?? 0); slot++) keeper.drop(memberName(key, slot))
    clearTimeout(socket.unusedTimer)
    own?.forget(key)
    unix.forget(key)
    closeHandles(socket)
    socket.path?.remove()
  }
}

/**
 * @typedef {object} Socket
 * @property {Handle} handle
 * @property {SocketGroup} [group]  each slot, or each worker, has a socket of its own
 * @property {number} [kept]  how many of these the keeper has
 * @property {Promise<unknown>} [keeping]  until what it has, or all of these, cannot be lost on the way to the keeper
 * @property {Place} query
 * @property {unknown} [data]  the ticket keys of a TLS server
 * @property {UnixPath} [path]
 * @property {boolean} [isShown]  whether its path leads to it, or has done so; false: it is to do so later
 * @property {string | null} [generation]  the workers that it was made for
 * @property {boolean} [isAdopted]  workers of another master may have it
 * @property {number} [inherited]  its number among the service manager's
 * @property {boolean} [isLent]  it is not to be closed
 * @property {boolean} isEstablished  a worker that was ready has listened there
 * @property {Set<number>} users  the workers that have it now
 * @property {NodeJS.Timeout} [unusedTimer]
 */

/** @typedef {import('./socket-group.js').SocketGroup} SocketGroup */
/** @typedef {import('./unix-path.js').UnixPath} UnixPath */

/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {SocketHandle | import('../../workers/node-internals.d.ts').DatagramHandle} Handle */

/** @typedef {Pick<import('../keeper/app-links.js').AppLink, 'held' | 'hold' | 'drop' | 'send' | 'claim'>} Keeper */

/** The keeper holds other sockets as well. */
const KEEPER_PREFIX = 'app '
const MEMBER = /^slot (\d+) (.*)$/s

/** @param {string} key @param {number} slot */
function memberName (key, slot) {
  return `slot ${slot} ${key}`
}

/**
 * @param {Keeper['held']} kept
 * @returns {Map<string, { handle: SocketHandle, data?: import('../keeper/link.js').KeptData }[]>} by key, those of the slots from 1 on
 */
function groupsOf (kept) {
  /** @type {ReturnType<typeof groupsOf>} */
  const groups = new Map()
  for (const [name, { handle, data }] of kept) {
    const [, slot, key] = MEMBER.exec(name) ?? []
    if (slot === undefined || (data && 'fd' in data)) continue
    const members = groups.get(key) ?? []
    members[Number(slot) - 1] = { handle, data }
    groups.set(key, members)
  }
  return groups
}

/** @param {Pick<Socket, 'handle' | 'group' | 'isLent'>} socket */
function closeHandles ({ handle, group, isLent }) {
  if (group) group.close()
  else if (!isLent) handle.close()
}

/** @type {Keeper} */
const NO_KEEPER = Object.freeze({ held: new Map(), hold () {}, drop () {}, send () {} })

/** @type {import('./unix-generations.js').Generations} */
const ONE_GENERATION = Object.freeze({ of: () => null, rollout: () => null, stays: () => true })

/** @typedef {{ address: string, code: string, message: string }} BindError */

const ECANCELED = -constants.errno.ECANCELED
const EADDRINUSE = -constants.errno.EADDRINUSE

/**
 * Binds without listening, by the call that node:cluster's primary uses for its shared handles.
 * @param {SocketQuery} query
 * @returns {{ handle: Handle, path?: UnixPath, errno?: undefined } | { handle?: undefined, errno: number }}
 */
export function bindSocket (query) {
  const { address, port } = query
  if (isUdp(query)) return bindUdpSocket(query)
  return port === -1 && address?.startsWith('/') ? bindPath(query, address) : bindTcp(query)
}

/** @param {SocketQuery} query @returns {{ handle: SocketHandle, errno?: undefined } | { handle?: undefined, errno: number }} */
export function bindTcp (query) {
  const handle = createHandle(query)
  if (typeof handle === 'number') return { errno: handle }
  if (!isBoundTo(handle, query.port)) {
    handle.close()
    return { errno: EADDRINUSE }
  }
  return { handle }
}

/** @param {SocketQuery} query @param {string} file @returns {ReturnType<typeof bindUnixPath>} */
function bindPath (query, file) {
  // A worker has it already, perhaps without listening yet: then nobody answers there.
  if (query.index > 0) return { errno: EADDRINUSE }
  return bindUnixPath(file, query.mode, (address) => createHandle({ ...query, address }))
}

/** @param {SocketQuery} query @returns {SocketHandle | number} an error number below 0 */
function createHandle ({ address, port, addressType, flags }) {
  // Never by a descriptor: it would be one of this process.
  return net._createServerHandle(address, port, addressType, undefined, flags)
}

/** @param {Pick<SocketQuery, 'port' | 'addressType'>} query */
function isTcpPort (query) {
  return !isUdp(query) && query.port !== null && query.port >= 0
}

/**
 * Node has no call that binds at once and does not receive either, so the handle is taken out of a socket of its own.
 * @param {SocketQuery & { addressType: dgram.SocketType }} query
 */
function bindUdpSocket ({ address, port, addressType, flags }) {
  const socket = dgram.createSocket(addressType)
  const handle = handleOf(socket)
  const errno = handle.bind(address, port ?? 0, flags ?? 0)
  if (!errno) return { handle }
  socket.close()
  return { errno }
}

/** A bind to a port in use may report nothing until listen(), which would then take a random port (libuv's delayed error). */
function isBoundTo (/** @type {SocketHandle} */ handle, /** @type {number | null} */ port) {
  if (!port || port < 0 || !handle.getsockname) return true
  /** @type {{ port?: number }} */
  const bound = {}
  handle.getsockname(bound)
  return bound.port === port
}

/** @typedef {Pick<SocketQuery, 'address' | 'port' | 'addressType'>} Place */

/** @param {Place} one @param {Place} other @returns {boolean} whether only one of them can be listened on */
function placesOverlap (one, other) {
  if (isUdp(one) !== isUdp(other)) return false
  if (!one.port || one.port < 0 || one.port !== other.port) return false
  const [a, b] = [one.address ?? '::', other.address ?? '::']
  return a === b || a === '::' || b === '::' || (a === '0.0.0.0' && !b.includes(':')) || (b === '0.0.0.0' && !a.includes(':'))
}

/** @param {SocketQuery} query that could not be bound @returns {string} who has the port, or nothing */
function holderHint ({ port, addressType }) {
  const holder = isTcpPort({ port, addressType }) && port ? holderText(port) : null
  return holder === null ? '' : `: ${holder}`
}

/** @param {SocketQuery} query @param {number} errno @returns {BindError} */
export function describeBindError ({ address, port }, errno) {
  const code = getSystemErrorName(errno)
  const where = port !== null && port >= 0 ? (address ? `${address}:${port}` : `port ${port}`) : String(address)
  const what = code === 'EADDRINUSE' ? 'is in use' : code === 'EACCES' ? 'is not permitted' : 'cannot be bound'
  return { address: where, code, message: `${where} ${what} (${code})` }
}
