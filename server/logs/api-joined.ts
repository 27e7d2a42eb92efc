import { DeckError } from '../errors.ts'
import { askAll, type Hosts } from '../api/ask.ts'
import { checkAlone, type Entry, type Query } from './api-lines.ts'

/**
 * Output of several hosts of a fleet, or of several apps of a host, joined by time. Times of hosts are by their own
 * clocks, so a page is followed by what was written until a time.
 */
/** what a line says of where it is from */
export type Whose = 'member' | 'app'
export type JoinedLine<W extends Whose = never> = Entry & Partial<Record<Whose, string>> & Record<W, string>
/** `hosts`: or apps */
export type JoinedLines<W extends Whose = never> = { items: JoinedLine<W>[], next: string | null, hosts: Hosts }
/** of one of them */
export type Wanted = Omit<Query, 'around' | 'cursor'> & { around?: number }

export const MAX_JOINED_LINES = 200
const DEFAULT_LINES = 100
/** Makes each search for the newest lines of all its logs together, where nothing else is searched for. */
const END_OF_TIME = Date.parse('9999-12-31T00:00:00.000Z')

/** `ask`: one of them @throws {DeckError} invalid-query */
export async function joinLines<W extends Whose> (whose: W, names: readonly string[],
  { lines = DEFAULT_LINES, cursor, ...given }: Query,
  ask: (name: string, wanted: Wanted) => Promise<{ items: Entry[], next: string | null }>): Promise<JoinedLines<W>>
{
  if (lines > MAX_JOINED_LINES)
    throw new DeckError('invalid-query', `lines: expected at most ${MAX_JOINED_LINES} of several, received ${lines}`)
  checkAlone({ ...given, cursor })
  const until = cursor === undefined ? given.until : Date.parse(cursor)
  if (Number.isNaN(until))
    throw new DeckError('invalid-query',
      `cursor: expected the "next" of an earlier page, received ${JSON.stringify(cursor?.slice(0, 60))}`)
  const around = aroundOf(given)
  const wanted = { ...given, lines, around, until: around === undefined ? until ?? END_OF_TIME : undefined }
  const joined = createJoin(whose, { lines, around })
  const hosts = await askAll(names.map((member) => ({ member })), async (name) => {
    const { items, next } = await ask(name, wanted)
    joined.add(name, items)
    return next !== null && items.length < lines && around === undefined
  })
  return { ...joined.result(), hosts }
}

/** @throws {DeckError} invalid-query: the place of a line is in one log */
function aroundOf ({ around }: Pick<Query, 'around'>): number | undefined {
  if (typeof around !== 'object') return around
  throw new DeckError('invalid-query', 'around: expected a time, received the place of a line of one app')
}

/** Takes the answers one by one, and keeps no more lines than are wanted. */
function createJoin<W extends Whose> (whose: W, { lines, around }: { lines: number, around?: number }) {
  /** `key`: its time, or that of the line before it */
  type Keyed = { line: JoinedLine<W>, key: string }
  let before: Keyed[] = []
  let after: Keyed[] = []
  /** The time of the newest line that is left out. */
  let leftOut = ''
  const middle = around === undefined ? null : isoOf(around)

  return {
    /** `items`: oldest first */
    add (name: string, items: Entry[]) {
      let key = ''
      const keyed = items.map((line) => {
        if (line.arrivedAt !== null && line.arrivedAt > key) key = line.arrivedAt
        return { line: { [whose]: name, ...line } as JoinedLine<W>, key }
      })
      before = newest([...before, ...keyed.filter((each) => middle === null || each.key < middle)],
        middle === null ? lines : Math.ceil(lines / 2))
      if (middle !== null)
        after = [...after, ...keyed.filter((each) => each.key >= middle)].sort(byKey).slice(0, Math.floor(lines / 2))
      if (middle === null && items.length >= lines && keyed[0].key > leftOut) leftOut = keyed[0].key
    },

    result (): Omit<JoinedLines<W>, 'hosts'> {
      // What was written at the same time as a line that is left out comes with it, on the next page.
      const whole = before.filter(({ key }) => leftOut === '' || key > leftOut)
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
