import http from 'node:http'
import type { DeckEvent, Detail, NewEvent } from '../../server/events/stream.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'
import type { LeftProcess, Unfinished } from '../../server/lifecycle/state.ts'

/** What a test reads: it knows what is there, and fails where that is missing. */
export type Seen<T> = T extends readonly (infer V)[] ? Seen<V>[]
  : T extends object ? { [Name in keyof T]-?: Seen<NonNullable<T[Name]>> }
  : T
export type SeenEvent = Omit<Seen<DeckEvent>, 'detail'> & { detail: SeenDetail }
/** `output`: of a hook; `data`: of a message; `requests`: of a heap */
type SeenDetail =
  & Seen<
    & RolloutView
    & Pick<Detail, 'changes' | 'crash' | 'crashGroup' | 'errorName' | 'stack' | 'delayMs' | 'endedRequests' | 'hint'>
    & Pick<Unfinished, 'closed'>>
  & { [name: string]: unknown, output: string, data: { type: string }, leftOut?: number, leftProcesses: LeftProcess[],
    requests: number,
    holders: { name: string, file: string, count: number, bytes: number, bytesPer1000Requests: number }[] }

/**
 * What fields of an event have to be: a value, a pattern of the text, a test of the value, or the same of what is inside.
 */
export type EventLike = { [Name in keyof DeckEvent]?: unknown }

/** `wanted`: see EventLike */
export function isLike (value: unknown, wanted: unknown): boolean {
  if (wanted instanceof RegExp) return wanted.test(String(value))
  if (typeof wanted === 'function') return Boolean(wanted(value))
  if (wanted === null || typeof wanted !== 'object') return value === wanted
  return value !== null && typeof value === 'object' &&
    Object.entries(wanted).every(([name, each]) => isLike(Reflect.get(value, name), each))
}

/** Of a number that only becomes larger: of an event, a worker or a rollout. */
export const above = (least: number | null) => (value: unknown) => Number(value) > Number(least)

/** Keeps what is published as it is given. */
export function keptEvents () {
  const events: SeenEvent[] = []
  return { events, publish (told: NewEvent) {
    events.push(told as SeenEvent)
    return told as DeckEvent
  } }
}

/** Soon enough for a test, and seldom enough for a master that is busy with its end. */
const RETRY_MS = 20

/**
 * Follows a deck's server-sent events from the first one on, as an EventSource does: a stream that is cut, as that of a
 * slow reader is, goes on after the last event that came.
 */
export function createEventLog () {
  const { seen, take, watch } = createSeenEvents()
  let request: http.ClientRequest | undefined
  let retry: NodeJS.Timeout | undefined

  return { count: () => seen.length, follow (url: string, token: string) {
    close()
    connect(url, token)
  }, close, until: (matches: (event: SeenEvent) => boolean) => watch(() => seen.find(matches)),
    untilMoreThan: (count: number) => watch(() => seen.length > count) }

  function close () {
    clearTimeout(retry)
    const old = request
    request = undefined
    old?.destroy()
  }

  function connect (url: string, token: string) {
    const own = http.get(url, { agent: false,
      headers: { authorization: `Bearer ${token}`, 'last-event-id': String(seen.at(-1)?.id ?? 0) } }, (response) => {
      let rest = ''
      response.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
        const blocks = (rest + text).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) read(block)
      })
    })
    request = own
    // ECONNRESET, ECONNREFUSED: 'close' follows, and until the test is over a master is expected there, or the next one
    // elsewhere.
    own.on('error', () => {}).on('close', () => {
      if (own === request) retry = setTimeout(() => connect(url, token), RETRY_MS)
    })
  }

  function read (block: string) {
    const data = block.split('\n').find((line) => line.startsWith('data:'))
    if (data) take(JSON.parse(data.slice(5)))
  }
}

/** The events that have come, oldest first, and who waits for some. */
export function createSeenEvents () {
  const seen: SeenEvent[] = []
  const watchers: Set<() => void> = new Set()

  return {
    seen,
    take (event: SeenEvent) {
      seen.push(event)
      for (const watcher of [...watchers]) watcher()
    },
    /** @returns what is found, now or after one of the next events */
    watch: <T>(find: () => T | undefined) =>
      new Promise<T>((resolve) => {
        const look = () => {
          const found = find()
          if (!found) return
          watchers.delete(look)
          resolve(found)
        }
        watchers.add(look)
        look()
      })
  }
}
