import { z } from 'zod'
import { PLACE } from '../config/line-place.ts'
import { DeckError } from '../errors.ts'
import { askAll, type Asked } from './ask-all.ts'
import { noMember } from './presence.ts'
import { isoTime } from './untrusted-json.ts'
import type { Person } from './rpc-client.ts'
import type { AppFleet } from './app-fleet.ts'

/**
 * Asks all members that have an app for lines of their workers' output, and joins them by time. Times are by the clocks
 * of the hosts, and what a member says is not trusted: its lines are bounded, and cut.
 */
/** times as ms since the epoch */
export type Wanted = { member?: string, lines?: number, stream?: string, q?: string, level?: readonly string[],
  since?: number, until?: number, around?: number }
type FleetLine =
  & z.infer<typeof LINE>
  & { member: string }
/** `cut`: those that had no time to search all their files; `next`: until when the lines before these were written */
type FleetLines = Asked & { cut: string[], items: FleetLine[], next: string | null }

const WITHIN = Object.freeze({ withinMs: 6000 })
const MAX_LINES = 200
const DEFAULT_LINES = 100
const MAX_CHARS = 4000
/** Makes a member search for the newest lines of all its logs together, where nothing else is searched for. */
const END_OF_TIME = '9999-12-31T00:00:00.000Z'

const LINE = z.object({
  slot: z.int().min(0).max(999),
  stream: z.enum(['stdout', 'stderr']),
  // A substring would keep the whole text in memory.
  text: z.string().transform((text) =>
    text.length > MAX_CHARS ? Buffer.from(text.slice(0, MAX_CHARS)).toString() : text
  ),
  arrivedAt: isoTime.refine((text) => !Number.isNaN(Date.parse(text))).nullable(),
  place: z.string().regex(PLACE)
})
const PAGE = z.object({ items: z.array(LINE).max(MAX_LINES), next: z.string().nullable() })

export function createFleetLogs (
  { obtain, members }: { obtain: AppFleet['obtain'], members: () => Promise<{ member: string }[]> }
) {
  return {
    /** @throws {DeckError} not-found */
    async list ({ member: only, lines = DEFAULT_LINES, ...wanted }: Wanted, person: Person): Promise<FleetLines> {
      const all = await members()
      const asked = only === undefined ? all : all.filter(({ member }) => member === only)
      if (asked.length === 0 && only !== undefined) throw noMember(only, all.map(({ member }) => member))
      const query = queryOf({ lines, ...wanted })
      const joined = createJoin({ lines, around: wanted.around })
      const { values, ...outcome } = await askAll(asked, async (member) => {
        const page =
          PAGE.safeParse(await obtain(member, { method: 'GET', path: `/logs?${query}` }, person, WITHIN)).data
        if (!page) throw new DeckError('not-possible', `${member} sent log lines that this version cannot read`)
        joined.add(member, page.items)
        return { isCut: page.next !== null && page.items.length < lines && wanted.around === undefined }
      })
      return { ...outcome, cut: values.filter(({ value }) => value.isCut).map(({ member }) => member),
        ...joined.result() }
    }
  }
}

function queryOf ({ lines, stream, q, level, since, until, around }: Wanted) {
  const query = new URLSearchParams({ lines: String(lines) })
  if (stream !== undefined) query.set('stream', stream)
  if (q !== undefined) query.set('q', q)
  if (level !== undefined) query.set('level', level.join())
  if (since !== undefined) query.set('since', isoOf(since))
  if (around === undefined) query.set('until', until === undefined ? END_OF_TIME : isoOf(until))
  else query.set('around', isoOf(around))
  return query
}

/** Takes the answers one by one, and keeps no more lines than are wanted. */
function createJoin ({ lines, around }: { lines: number, around?: number }) {
  /** `key`: its time, or that of the line before it */
  type Keyed = { line: FleetLine, key: string }
  let before: Keyed[] = []
  let after: Keyed[] = []
  /** The time of the newest line that is left out. */
  let leftOut = ''
  const middle = around === undefined ? null : isoOf(around)

  return {
    /** `items`: oldest first */
    add (member: string, items: z.infer<typeof LINE>[]) {
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

    result (): { items: FleetLine[], next: string | null } {
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
