import { readableText } from '../system/one-line.js'

/** @typedef {NodeJS.WritableStream & { isTTY?: boolean }} Stream */

/** What draws on a terminal writes to the stream itself. @type {WeakMap<object, any>} */
const streams = new WeakMap()

/**
 * All that the commands print goes through this: whatever an app, a commit, a file or a member has put into it, a terminal gets nothing that
 * moves its cursor, changes its title or turns a line around. Others get it as it is.
 * @template {Stream} T @param {T} stream @returns {T}
 */
export function shownStream (stream) {
  if (!stream.isTTY) return stream
  const write = (/** @type {any} */ text, /** @type {any[]} */ ...others) => stream.write(typeof text === 'string' ? readableText(text) : text, ...others)
  const shown = new Proxy(stream, {
    get (_, name) {
      const value = name === 'write' ? write : Reflect.get(stream, name)
      return typeof value === 'function' ? value.bind(stream) : value
    }
  })
  streams.set(shown, stream)
  return shown
}

/** The stream itself, for what makes its own control sequences and takes those of others out. @template T @param {T} stream @returns {T} */
export function drawnStream (stream) {
  return streams.get(/** @type {any} */ (stream)) ?? stream
}
