import { readableText } from '../system/one-line.ts'

type Stream =
  & NodeJS.WritableStream
  & { isTTY?: boolean }

/** What draws on a terminal writes to the stream itself. */
const streams: WeakMap<object, unknown> = new WeakMap()

/**
 * All that the commands print goes through this: whatever an app, a commit, a file or a member has put into it, a
 * terminal gets nothing that moves its cursor, changes its title or turns a line around. Others get it as it is.
 */
export function shownStream<T extends Stream> (stream: T): T {
  if (!stream.isTTY) return stream
  const write = (text: unknown, ...others: unknown[]) =>
    Reflect.apply(stream.write, stream, [typeof text === 'string' ? readableText(text) : text, ...others])
  const shown = new Proxy(stream, { get (_, name) {
    const value = name === 'write' ? write : Reflect.get(stream, name)
    return typeof value === 'function' ? value.bind(stream) : value
  } })
  streams.set(shown, stream)
  return shown
}

/** The stream itself, for what makes its own control sequences and takes those of others out. */
export function drawnStream<T extends object> (stream: T): T {
  return (streams.get(stream) ?? stream) as T
}
