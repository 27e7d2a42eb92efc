import { fittingSockets } from './activated.js'
import { lookAt } from './socket-names.js'
import { findUnixPath } from './unix-path.js'

/** @typedef {import('../keeper/link.js').KeptData} KeptData */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {import('./unix-path.js').UnixPath} UnixPath */
/** @typedef {NonNullable<KeptData['given']>} GivenPlace */

/**
 * Sockets on the addresses of a program that this app takes the place of: that one still serves there, so nobody else could bind them.
 * Each is given to whoever asks for its address first, and from then on is a socket of the app like any other.
 * @param {Pick<import('./sockets.js').Keeper, 'held' | 'drop'>} keeper
 */
export function createGiven ({ held, drop }) {
  // A program removes the path of another one before it binds it itself, so the paths are kept from now on.
  const left = [...held].flatMap(([name, { handle, data }]) => data && 'given' in data && data.given ? [{ name, handle, place: data.given, path: pathOf(data.given) }] : [])
  let isPending = left.length > 0
  /** The program is to have them again. @type {UnixPath[]} */
  const lent = []

  return {
    /** @param {SocketQuery} query @returns {{ handle: SocketHandle, isCopy?: boolean, path?: UnixPath, errno?: undefined } | null} */
    match (query) {
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

    /** The app does not need it any more, while its workers may still remove it. @param {UnixPath} path */
    keep (path) { lent.push(path) },

    /** No worker is left. */
    giveBack,

    /** @returns {GivenPlace[]} those that nobody has asked for */
    left: () => left.map(({ place }) => place),

    /** @returns {import('./unix-path.js').Memory[]} the Unix sockets that the program may yet have to go on with */
    files: () => [...left.flatMap(({ path }) => path ?? []), ...lent].map(({ memory }) => memory),

    /** The app has taken the place of the program: whatever it has not asked for is of others. */
    settle () {
      close()
      giveBack()
      isPending = false
    },

    /** Whoever comes next is given the same. */
    letGo () { for (const path of [...left.map((each) => each.path), ...lent]) path?.leave() },

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

/** @param {GivenPlace} place @returns {UnixPath | null} */
function pathOf ({ path: file }) {
  const there = file === undefined ? undefined : lookAt(file)
  const path = file !== undefined && there?.isSocket() ? findUnixPath({ file, dev: there.dev, ino: there.ino }) : null
  path?.restore()
  return path
}
