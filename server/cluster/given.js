import { fittingSockets } from './activated.js'
import { lookAt } from './socket-names.js'
import { findUnixPath } from './unix-path.js'

/** @typedef {import('../keeper/link.js').KeptData} KeptData */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {NonNullable<KeptData['given']>} GivenPlace */

/**
 * Sockets on the addresses of a program that this app takes the place of: that one still serves there, so nobody else could bind them.
 * Each is given to whoever asks for its address first, and from then on is a socket of the app like any other.
 * @param {Pick<import('./sockets.js').Keeper, 'held' | 'drop'>} keeper
 */
export function createGiven ({ held, drop }) {
  const left = [...held].flatMap(([name, { handle, data }]) => data && 'given' in data && data.given ? [{ name, handle, place: data.given }] : [])

  return {
    /** @param {SocketQuery} query @returns {{ handle: SocketHandle, path?: import('./unix-path.js').UnixPath, errno?: undefined } | null} */
    match (query) {
      const found = query.index > 0 ? undefined : fittingSockets(query, left, ({ place }) => place)[0]
      if (!found) return null
      const { name, handle, place } = found
      const path = place.path === undefined ? undefined : pathOf(place.path)
      if (path === null) return null
      left.splice(left.indexOf(found), 1)
      drop(name)
      return { handle, ...(path && { path }) }
    },

    /** @returns {GivenPlace[]} those that nobody has asked for */
    left: () => left.map(({ place }) => place),

    /** @returns {{ file: string, dev: number, ino: number }[]} the Unix sockets of these */
    files: () => left.flatMap(({ place: { path: file } }) => {
      const there = file === undefined ? undefined : lookAt(file)
      return file !== undefined && there?.isSocket() ? [{ file, dev: there.dev, ino: there.ino }] : []
    }),

    close () {
      for (const { name, handle } of left.splice(0)) {
        drop(name)
        handle.close()
      }
    }
  }
}

/** @param {string} file @returns {ReturnType<typeof findUnixPath>} */
function pathOf (file) {
  const there = lookAt(file)
  const found = there?.isSocket() ? findUnixPath({ file, dev: there.dev, ino: there.ino }) : null
  found?.restore()
  return found
}
