import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { bindDatagrams, bindHandle, EADDRINUSE, isDescriptor } from '../../workers/descriptor.js'
import { lookInMiddleOfSecond } from '../../workers/look-together.js'
import { isUdp, placeOfKey, socketKey } from '../../workers/protocol.js'
import { holderText } from '../programs/holder.js'
import { setBindOptions } from '../programs/socket-options.js'
import { loadPosix } from '../system/posix.js'
import { createInherited } from './activated.js'
import { createGiven } from './given.js'
import { ANY_V4, ANY_V6, V6_ONLY } from './socket-group.js'
import { rightsHint } from './bind-hint.js'
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
/** Nothing tells that a worker has shut its socket down and lives on. */
const LOOK_EVERY_MS = 1_000

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
 * @param {(files: import('./unix-path.js').Memory[]) => void} [options.onPaths]  Unix sockets whose paths none of the workers may remove
 * @param {number} [options.unusedGraceMs]
 * @param {number} [options.unaskedGraceMs]
 */
export function createSockets ({
  onBindError, onUnused = () => {}, keeper = NO_KEEPER, bind = bindSocket, own = null, stage = null, generations = ONE_GENERATION, onPaths = () => {},
  unusedGraceMs = UNUSED_GRACE_MS, unaskedGraceMs = UNASKED_GRACE_MS
}) {
  /** @type {Map<string, Socket>} */
  const held = new Map()
  /** What could not be bound for a worker, unless something could after that. @type {Map<number, { query: SocketQuery, errno: number }>} */
  const refused = new Map()
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
    held.set(key, { ...kept, path, handle, query: placeOfKept(baseOf(key), handle), isEstablished: true, users: new Set() })
  }
  for (const [key, members] of groupsOf(keeper.held)) {
    const kept = members.map(({ handle }) => handle)
    const [{ handle, data }] = members.flat()
    const socket = { data: data?.data, query: placeOfKept(key, handle), users: new Set() }
    if (own) held.set(key, { ...socket, handle, kept, group: own.adopt(key, kept.flat()), isEstablished: true })
    else held.set(key, { ...socket, handle: ungroupSockets(key, kept), isEstablished: false })
  }
  const inherited = createInherited(keeper)
  const given = createGiven(keeper)
  let isClosed = false
  const stopLooking = own && 'hasEnded' in own ? lookInMiddleOfSecond(() => { if (own.hasEnded()) lookAtGroups() }, LOOK_EVERY_MS) : () => {}
  const unix = createUnixGenerations({ held, ready, stage, generations, drop: dropSocket, expire: (key) => expireSocket(key, unaskedGraceMs), isClosed: () => isClosed, onMade: tellPaths })

  tellPaths()

  return {
    /**
     * @param {number} worker @param {SocketQuery} query
     * @returns {boolean} whether another starting worker holds the address, perhaps only to test whether it is free
     */
    isContended: (worker, query) => !held.has(socketKey(query)) && findRival(worker, query)?.isEstablished === false,

    /**
     * @param {number} worker @param {{ query: SocketQuery, data?: unknown, slot?: number, isOnlyIfHeld?: boolean }} request  `isOnlyIfHeld`: nothing is bound for it
     * @returns {Omit<import('../../workers/protocol.js').SocketReply, 'type' | 'seq'> & { handle?: Handle, keeping?: Promise<unknown>, until?: Promise<void> }}
     *   `keeping`: until the keeper cannot lose the socket any more; the worker is to be told only then, as the next master would count the
     *   sockets of the address otherwise than the kernel if it did not know one that a worker has; `until`: it has to be asked again then
     */
    request (worker, { query, data, slot = 1, isOnlyIfHeld = false }) {
      if (isOnlyIfHeld && !held.get(socketKey(query))?.isEstablished) return { key: socketKey(query), isNotHeld: true }
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
        if (bound.errno !== undefined) {
          refused.set(worker, { query, errno: bound.errno })
          return { key, errno: bound.errno, awaitMaster: onBindError(describeBindError(query, bound.errno)) }
        }
        const { errno, ...whose } = bound
        socket = { ...whose, query, data, isEstablished: false, users: new Set() }
        held.set(key, socket)
        if (socket.path) tellPaths()
        // Nobody could bind it again, so a worker that only tests whether the address is free does not free it.
        if (ofOther) keepSocket(key, socket)
      }
      clearTimeout(socket.unusedTimer)
      const keepsFlags = hasFlags(socket)
      socket.users.add(worker)
      refused.delete(worker)
      if (ready.has(worker) || socket.inherited !== undefined) keepSocket(key, socket)
      if (!socket.group) return { key, handle: socket.handle, data: socket.data, ...(keepsFlags && { keepsFlags }) }
      const { errno, handle } = socket.group.member(own?.numberFor(key, { worker, slot }) ?? 1)
      lookAtGroups(key)
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
      lookAtGroups(key)
      // It has only tested whether the address is free, and needs it free again.
      if (isUnused(key) && (!socket.isEstablished || unix.isHidden(key, socket))) dropSocket(key)
      else expireSocket(key)
    },

    /** @returns {import('./given.js').GivenPlace[]} where a program serves whose place the app takes, and no worker has asked to */
    unclaimed: given.left,

    /** Connections to these would wait for ever. */
    closeUnclaimed: given.settle,

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

    explain,

    /** @param {number} worker @param {string} [entry]  the file of its program @returns {{ errno: number, inWords: () => string } | null} what could not be bound for it last */
    refused (worker, entry) {
      const { query, errno } = refused.get(worker) ?? {}
      return query && errno ? { errno, inWords: () => explain(query, errno, entry).message } : null
    },

    /** @param {number} worker is gone; its sockets stay for its successor */
    forget (worker) {
      ready.delete(worker)
      refused.delete(worker)
      for (const { users } of held.values()) users.delete(worker)
      unix.dropUnused(isUnused)
    },

    /** The cluster ends: later connections are refused instead of left waiting. */
    close () {
      isClosed = true
      stopLooking()
      for (const key of [...held.keys()]) dropSocket(key)
      inherited.close()
      given.close()
    },

    /** No worker is left that could remove the path of another program. */
    finish: given.giveBack,

    /** Those that are meant to last stay open, for whoever makes this cluster anew in this process, and has them from its keeper. */
    letGo () {
      isClosed = true
      stopLooking()
      for (const [key, socket] of [...held]) {
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (socket.isEstablished) socket.path?.leave()
        else dropSocket(key)
      }
      held.clear()
      given.letGo()
    },

    /** Another master has these sockets now. */
    leave () {
      isClosed = true
      stopLooking()
      for (const [key, socket] of [...held]) {
        if (socket.isShown === false) dropSocket(key)
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (held.has(key)) closeHandles(socket)
        if (held.has(key)) socket.path?.leave()
      }
      held.clear()
      inherited.close()
      given.letGo()
    }
  }

  /** Whether the program that a socket was taken from has it as well, and may go on with it. @param {Socket} socket */
  function isOfOther ({ isCopy }) {
    return isCopy === true && given.isPending()
  }

  /** @param {Socket} socket @returns {boolean} whether others have said whether calls on it wait, which holds for all that have it */
  function hasFlags (socket) {
    return isOfOther(socket) || (socket.users.size > 0 && isTcpPort(socket.query))
  }

  /** @param {SocketQuery} query @param {number} errno @param {string} [entry]  the file of the program that has asked @returns {BindError} in words, with what is known of the cause */
  function explain (query, errno, entry) {
    const error = describeBindError(query, errno)
    const hint = errno === EADDRINUSE ? inherited.hint(query) || holderHint(query) : errno === EACCES ? rightsHint(query, entry) : ''
    return { ...error, message: error.message + hint }
  }

  function tellPaths () {
    onPaths([...[...held.values()].flatMap(({ path }) => path ? [path.memory] : []), ...given.files()])
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
    const { group, data, kept = [] } = socket
    const handles = [...group?.handles() ?? []]
    const sent = handles.map((handle, index) => handle === kept[index] ? null : keeper.hold(memberName(key, index + 1), handle, { data })).filter(Boolean)
    if (sent.length > 0) awaitKeeper(socket, sent)
    for (let slot = handles.length + 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    socket.kept = handles
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

  /** Where nobody has a socket of its own, all workers share the first one of a group. @param {string} key @param {SocketHandle[]} kept */
  function ungroupSockets (key, kept) {
    const [first, ...others] = kept.flat()
    for (const handle of others) handle.close()
    for (let slot = 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    return first
  }

  /** @param {string} [only]  default: all of them */
  function lookAtGroups (only) {
    if (!own || isClosed) return
    own.look({ usersOf: (key) => held.get(key)?.users ?? new Set(), only })
    for (const [key, socket] of held) if ((only ?? key) === key && socket.group && socket.isEstablished) keepMembers(key, socket)
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
    for (let slot = 1; slot <= (socket.kept?.length ?? 0); slot++) keeper.drop(memberName(key, slot))
    clearTimeout(socket.unusedTimer)
    own?.forget(key)
    unix.forget(key)
    closeHandles(socket)
    if (!isOfOther(socket)) socket.path?.remove()
    else if (socket.path) given.keep(socket.path)
    if (socket.path) tellPaths()
  }
}

/**
 * @typedef {object} Socket
 * @property {Handle} handle
 * @property {SocketGroup} [group]  each slot, or each worker, has a socket of its own
 * @property {SocketHandle[]} [kept]  those of these that the keeper has, by slot
 * @property {Promise<unknown>} [keeping]  until what it has, or all of these, cannot be lost on the way to the keeper
 * @property {Place} query
 * @property {unknown} [data]  the ticket keys of a TLS server
 * @property {UnixPath} [path]
 * @property {boolean} [isCopy]  a program has it too whose place the app takes, or has taken
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
 * @returns {Map<string, { handle: SocketHandle, data?: import('../keeper/link.js').KeptData }[]>} by key, those of the slots from 1 on; a slot may have none
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
const EACCES = -constants.errno.EACCES

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
  const handle = bindHandle(query)
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

/** @param {SocketQuery} query @param {string} file @returns {ReturnType<typeof bindUnixPath>} */
function bindPath (query, file) {
  // A worker has it already, perhaps without listening yet: then nobody answers there.
  if (query.index > 0) return { errno: EADDRINUSE }
  return bindUnixPath(file, query.mode, (address) => bindHandle({ ...query, address }))
}

/** @param {Pick<SocketQuery, 'port' | 'addressType'>} query */
function isTcpPort (query) {
  return !isUdp(query) && query.port !== null && query.port >= 0
}

/** @param {SocketQuery & { addressType: 'udp4' | 'udp6' }} query */
function bindUdpSocket (query) {
  const { address, port, flags, before } = query
  const place = { address: String(address), port: Number(port), isV6Only: Boolean((flags ?? 0) & V6_ONLY) }
  const handle = bindDatagrams(query, before && ((each) => bindPrepared(each, place, before)))
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

/** @param {import('../../workers/node-internals.d.ts').DatagramHandle} handle @param {{ address: string, port: number, isV6Only: boolean }} place @param {import('../../workers/protocol.js').BindOptions} before @returns {number} 0, or an error number below 0 */
function bindPrepared (handle, place, before) {
  const { fd, errno = -constants.errno.ENOSYS } = loadPosix()?.bindUdp({ ...place, prepare: (each) => setBindOptions(each, before) }) ?? {}
  return fd === undefined ? errno : handle.open(fd)
}

/** @typedef {Pick<SocketQuery, 'address' | 'port' | 'addressType' | 'flags' | 'before'>} Place */

/** @param {string} key @param {Pick<SocketHandle, 'fd'>} handle  that a master before has bound @returns {Place} */
function placeOfKept (key, { fd }) {
  return { ...placeOfKey(key), flags: fd > 0 && loadPosix()?.isV6Only(fd) ? V6_ONLY : 0 }
}

/** @param {Place} one @param {Place} other @returns {boolean} whether only one of them can be listened on */
function placesOverlap (one, other) {
  if (isUdp(one) !== isUdp(other) || isOnOtherDevice(one, other)) return false
  if (!one.port || one.port < 0 || one.port !== other.port) return false
  return one.address === other.address || covers(one, other) || covers(other, one)
}

/** @param {Place} one @param {Place} other */
function isOnOtherDevice ({ before: one }, { before: other }) {
  return one?.device !== undefined && other?.device !== undefined && one.device !== other.device
}

/** @param {Place} one @param {Place} other @returns {boolean} whether what is sent to the other address comes to this one, too */
function covers ({ address, flags = 0 }, other) {
  const isV6 = (other.address ?? ANY_V6).includes(':')
  return address === ANY_V4 ? !isV6 : (address ?? ANY_V6) === ANY_V6 && (isV6 || !(flags & V6_ONLY))
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
