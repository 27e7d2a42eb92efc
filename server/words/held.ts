/**
 * What a worker that was replaced still has, in words: the same in the history, on the pages and in a terminal.
 * `connections`: other long-lived ones; `sessions`: that are in its memory, and whose requests go on to reach it
 */
export type LongLived = { transfers?: number, webSockets?: number, eventStreams?: number, connections?: number,
  sessions?: number }

const WORDS: readonly (readonly [keyof LongLived, string])[] = Object.freeze([['webSockets', 'WebSocket'], [
  'eventStreams',
  'event stream'
], ['connections', 'other long-lived connection'], ['transfers', 'transfer'], ['sessions', 'session']])

/** @returns `120 WebSockets, 3 event streams and 1 transfer` */
export function heldWords (held?: LongLived | null): string {
  const parts = WORDS.flatMap(([name, word]) =>
    held?.[name] ? [`${held[name].toLocaleString('en-US')} ${word}${held[name] === 1 ? '' : 's'}`] : []
  )
  if (parts.length < 2) return parts[0] ?? 'no long-lived connection'
  return `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

export function countLongLived (held?: LongLived | null) {
  return WORDS.reduce((sum, [name]) => sum + (held?.[name] ?? 0), 0)
}
