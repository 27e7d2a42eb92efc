import { fittingSockets } from './inherited-sockets.ts'
import { lookAt } from './socket-names.ts'
import { findUnixPath, type Memory, type UnixPath } from './unix-path.ts'
import type { KeptData } from '../keeper/link.ts'
import type { SocketQuery } from '../../workers/protocol.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Keeper } from './sockets.ts'

export type GivenPlace = NonNullable<KeptData['given']>

/**
 * Sockets on the addresses of a program that this app takes the place of: that one still serves there, so nobody else
 * could bind them. Each is given to whoever asks for its address first, and from then on is a socket of the app like
 * any other.
 */
export function createGiven ({ held, drop }: Pick<Keeper, 'held' | 'drop'>) {
  // A program removes the path of another one before it binds it itself, so the paths are kept from now on.
  const left = [...held].flatMap(([name, { handle, data }]) =>
    data && 'given' in data && data.given ? [{ name, handle, place: data.given, path: pathOf(data.given) }] : []
  )
  let isPending = left.length > 0
  /** The program is to have them again. */
  const lent: UnixPath[] = []

  return {
    match (query: SocketQuery): { handle: SocketHandle, isCopy?: boolean, path?: UnixPath, errno?: undefined } | null {
      const found = query.index > 0 ? undefined : fittingSockets(query, left, ({ place }) => place)[0]
      if (!found) return null
      const { handle, place: { path: file, isCopy }, path } = found
      left.splice(left.indexOf(found), 1)
      drop(found.name)
      if (file === undefined || path?.restore() === 0) return { handle, isCopy, ...(path && { path }) }
      // No path leads to it any more, so the app binds a socket of its own, as the program would have to.
      handle.close()
      if (path) lent.push(path)
      return null
    },

    /** Whether the program may yet have to go on as before. */
    isPending: () => isPending,

    /** The app does not need it any more, while its workers may still remove it. */
    keep (path: UnixPath) {
      lent.push(path)
    },

    /** No worker is left. */
    giveBack,

    /** @returns those that nobody has asked for */
    left: (): GivenPlace[] => left.map(({ place }) => place),

    /** @returns the Unix sockets that the program may yet have to go on with */
    files: (): Memory[] => [...left.flatMap(({ path }) => path ?? []), ...lent].map(({ memory }) => memory),

    /** The app has taken the place of the program: whatever it has not asked for is of others. */
    settle () {
      close()
      giveBack()
      isPending = false
    },

    /** Whoever comes next is given the same. */
    letGo () {
      for (const path of [...left.map((each) => each.path), ...lent]) path?.leave()
    },

    close
  }

  function close () {
    for (const { name, handle, path } of left.splice(0)) {
      drop(name)
      handle.close()
      if (path) lent.push(path)
    }
  }

  function giveBack () {
    for (const path of lent.splice(0)) path.giveBack()
  }
}

function pathOf ({ path: file }: GivenPlace): UnixPath | null {
  const there = file === undefined ? undefined : lookAt(file)
  const path = file !== undefined && there?.isSocket() ? findUnixPath({ file, dev: there.dev, ino: there.ino }) : null
  path?.restore()
  return path
}
