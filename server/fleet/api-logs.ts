import { z } from 'zod'
import { PLACE } from '../config/line-place.ts'
import { DeckError } from '../errors.ts'
import { askAll, askHost, lenient, onlyOf, type Hosts } from '../api/ask.ts'
import { COUNT, pageOf } from '../api/fields.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import { checkAlone, LOG_LINE, type Query } from '../logs/api-lines.ts'
import type { Person } from './rpc-client.ts'

/**
 * Output of the workers of several hosts, joined by time. Times are by the clocks of the hosts, so a page is followed by
 * what was written until a time.
 */
export type FleetLogLine = z.infer<typeof LOG_LINE> & { member: string }
export type FleetLogLines = { items: FleetLogLine[], next: string | null, hosts: Hosts }

const WITHIN_MS = 6000
const MAX_LINES = 200
const DEFAULT_LINES = 100
/** Makes a host search for the newest lines of all its logs together, where nothing else is searched for. */
const END_OF_TIME = '9999-12-31T00:00:00.000Z'

const SAID = lenient(pageOf(LOG_LINE.extend({ slot: COUNT.max(999), place: z.string().regex(PLACE) })), MAX_LINES)

/** @throws {DeckError} no-fleet, fleet-away, not-found, invalid-query */
export async function fleetLines (deck: FleetDeck,
  { member, lines = DEFAULT_LINES, cursor, ...given }: Query & { member: string },
  person: Person): Promise<FleetLogLines>
{
  if (lines > MAX_LINES)
    throw new DeckError('invalid-query', `lines: expected at most ${MAX_LINES} of several hosts, received ${lines}`)
  checkAlone({ ...given, cursor })
  const until = cursor === undefined ? given.until : Date.parse(cursor)
  if (Number.isNaN(until))
    throw new DeckError('invalid-query',
      `cursor: expected the "next" of an earlier page, received ${JSON.stringify(cursor?.slice(0, 60))}`)
  const around = aroundOf(given)
  const fleet = fleetOf(deck)
  const joined = createJoin({ lines, around })
  const path = `/logs?${queryOf({ ...given, until, around, lines })}`
  const hosts = await askAll(await fleet.members(onlyOf(member)), async (name) => {
    const { items, next } = await askHost(fleet, name, { path, answer: SAID, withinMs: WITHIN_MS }, person)
    joined.add(name, items)
    return next !== null && items.length < lines && around === undefined
  })
  return { ...joined.result(), hosts }
}

/** @throws {DeckError} invalid-query: the place of a line is one of one host */
function aroundOf ({ around }: Pick<Query, 'around'>): number | undefined {
  if (typeof around !== 'object') return around
  throw new DeckError('invalid-query', 'around: expected a time of several hosts, received the place of a line')
}

function queryOf ({ level, since, until, around, ...given }: Omit<Query, 'around'> & { around?: number }) {
  const times = { since, ...(around === undefined ? { until: until ?? END_OF_TIME } : { around }) }
  const texts = { ...given, level: level?.join(), ...mapped(times, (ms) => typeof ms === 'number' ? isoOf(ms) : ms) }
  return new URLSearchParams(mapped(texts, String))
}

/** Maps the values, and leaves out what is undefined. */
function mapped<T, U> (values: Record<string, T | undefined>, toValue: (value: T) => U): Record<string, U> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => value === undefined ? [] : [[name, toValue(value)]])
  )
}

/** Takes the answers one by one, and keeps no more lines than are wanted. */
function createJoin ({ lines, around }: { lines: number, around?: number }) {
  /** `key`: its time, or that of the line before it */
  type Keyed = { line: FleetLogLine, key: string }
  let before: Keyed[] = []
  let after: Keyed[] = []
  /** The time of the newest line that is left out. */
  let leftOut = ''
  const middle = around === undefined ? null : isoOf(around)

  return {
    /** `items`: oldest first */
    add (member: string, items: z.infer<typeof LOG_LINE>[]) {
      let key = ''
      const keyed = items.map((line) => {
        if (line.arrivedAt !== null && line.arrivedAt > key) key = line.arrivedAt
        return { line: { member, ...line }, key }
      })
      before = newest([...before, ...keyed.filter((each) => middle === null || each.key < middle)],
        middle === null ? lines : Math.ceil(lines / 2))
      if (middle !== null)
        after = [...after, ...keyed.filter((each) => each.key >= middle)].sort(byKey).slice(0, Math.floor(lines / 2))
      if (middle === null && items.length >= lines && keyed[0].key > leftOut) leftOut = keyed[0].key
    },

    result (): { items: FleetLogLine[], next: string | null } {
      // What was written at the same time as a line that is left out comes with it, on the next page.
      const whole = before.filter(({ key }) => key > leftOut)
      const shown = whole.length > 0 || middle !== null ? whole : before
      const items = [...shown, ...after].map(({ line }) => line)
      if (leftOut === '' || middle !== null) return { items, next: null }
      return { items, next: isoOf(Date.parse(leftOut) + (shown === whole ? 1 : 0)) }
    }
  }

  function newest (all: Keyed[], count: number) {
    const sorted = all.sort(byKey)
    const last = sorted.at(-count - 1)
    if (last && middle === null && last.key > leftOut) leftOut = last.key
    return sorted.slice(-count)
  }
}

function byKey (one: { key: string }, other: { key: string }) {
  return one.key < other.key ? -1 : Number(one.key > other.key)
}

function isoOf (ms: number) {
  return new Date(ms).toISOString()
}
