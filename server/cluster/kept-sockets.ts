import { loadPosix } from '../system/posix.ts'
import { placeOfKey } from '../../workers/protocol.ts'
import { V6_ONLY } from './socket-group.ts'
import { baseOf } from './unix-generations.ts'
import { findUnixPath } from './unix-path.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { KeptData } from '../keeper/link.ts'
import type { Keeper, Place, Socket } from './sockets.ts'
import type { Steering } from './steering.ts'
import type { Sticky } from './sticky.ts'

/** The keeper holds other sockets as well. */
const KEEPER_PREFIX = 'app '
const MEMBER = /^slot (\d+) (.*)$/s

/**
 * The keeper's copies of the sockets of the app. Those of the master before are held from the beginning: `held` gets
 * them.
 */
export function createKeptSockets (keeper: Keeper,
  { held, own }: { held: Map<string, Socket>, own: Sticky | Steering | null })
{
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
    held.set(key, { ...kept, path, handle, query: placeOfKept(baseOf(key), handle), isEstablished: true,
      users: new Set() })
  }
  for (const [key, members] of groupsOf(keeper.held)) {
    const kept = members.map(({ handle }) => handle)
    const [{ handle, data }] = members.flat()
    const socket = { data: data?.data, query: placeOfKept(key, handle), users: new Set<number>() }
    if (own) held.set(key, { ...socket, handle, kept, group: own.adopt(key, kept.flat()), isEstablished: true })
    else held.set(key, { ...socket, handle: ungroupSockets(key, kept), isEstablished: false })
  }

  return {
    /** Only now the keeper gets a copy, as a worker that tests for a free port has to find it free again. */
    keep (key: string, socket: Socket) {
      if (socket.isEstablished) return
      socket.isEstablished = true
      if (socket.group) return keepMembers(key, socket)
      const { handle, data, path, inherited: fd } = socket
      const sent = keeper.hold(KEEPER_PREFIX + key, handle, { data, ...(path && { path: path.memory }),
        ...(fd !== undefined && { inherited: fd }) })
      if (sent) awaitKeeper(socket, [sent])
    },

    keepMembers,

    drop (key: string, { isEstablished, group, kept }: Socket) {
      if (isEstablished && !group) keeper.drop(KEEPER_PREFIX + key)
      for (let slot = 1; slot <= (kept?.length ?? 0); slot++) keeper.drop(memberName(key, slot))
    }
  }

  /** `socket`: of a group, which has as many members as there are slots */
  function keepMembers (key: string, socket: Socket) {
    const { group, data, kept = [] } = socket
    const handles = [...group?.handles() ?? []]
    const sent = handles.map((handle, index) =>
      handle === kept[index] ? null : keeper.hold(memberName(key, index + 1), handle, { data })
    ).filter(Boolean)
    if (sent.length > 0) awaitKeeper(socket, sent)
    for (let slot = handles.length + 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    socket.kept = handles
  }

  /** Remembers what is on its way to the keeper. */
  function awaitKeeper (socket: Socket, sent: unknown[]) {
    const keeping = Promise.all([socket.keeping, ...sent]).then(() => {
      if (socket.keeping === keeping) delete socket.keeping
    })
    socket.keeping = keeping
  }

  /** Where nobody has a socket of its own, all workers share the first one of a group. */
  function ungroupSockets (key: string, kept: SocketHandle[]) {
    const [first, ...others] = kept.flat()
    for (const handle of others) handle.close()
    for (let slot = 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    return first
  }
}

/** `handle`: that a master before has bound */
function placeOfKept (key: string, { fd }: Pick<SocketHandle, 'fd'>): Place {
  return { ...placeOfKey(key), flags: fd > 0 && loadPosix()?.isV6Only(fd) ? V6_ONLY : 0 }
}

function memberName (key: string, slot: number) {
  return `slot ${slot} ${key}`
}

/** @returns by key, those of the slots from 1 on; a slot may have none */
function groupsOf (kept: Keeper['held']): Map<string, { handle: SocketHandle, data?: KeptData }[]> {
  const groups: ReturnType<typeof groupsOf> = new Map()
  for (const [name, { handle, data }] of kept) {
    const [, slot, key] = MEMBER.exec(name) ?? []
    if (slot === undefined || (data && 'fd' in data)) continue
    const members = groups.get(key) ?? []
    members[Number(slot) - 1] = { handle, data }
    groups.set(key, members)
  }
  return groups
}
