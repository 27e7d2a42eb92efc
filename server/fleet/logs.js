import { z } from 'zod'
import { PLACE } from '../config/line-place.js'
import { DeckError } from '../errors.js'
import { askAll } from './ask-all.js'
import { noMember } from './presence.js'
import { isoTime } from './untrusted-json.js'

/**
 * Asks all members that have an app for lines of their workers' output, and joins them by time. Times are by the clocks of
 * the hosts, and what a member says is not trusted: its lines are bounded, and cut.
 * @typedef {import('./rpc-client.js').Person} Person
 * @typedef {{ member?: string, lines?: number, stream?: string, q?: string, level?: readonly string[], since?: number, until?: number, around?: number }} Wanted
 *   times as ms since the epoch
 * @typedef {z.infer<typeof LINE> & { member: string }} FleetLine
 * @typedef {import('./ask-all.js').Asked & { cut: string[], items: FleetLine[], next: string | null }} FleetLines
 *   `cut`: those that had no time to search all their files; `next`: until when the lines before these were written
 */

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
  text: z.string().transform((text) => text.length > MAX_CHARS ? Buffer.from(text.slice(0, MAX_CHARS)).toString() : text),
  arrivedAt: isoTime.refine((text) => !Number.isNaN(Date.parse(text))).nullable(),
  place: z.string().regex(PLACE)
})
const PAGE = z.object({ items: z.array(LINE).max(MAX_LINES), next: z.string().nullable() })

/**
 * @param {object} parts
 * @param {import('./app-fleet.js').AppFleet['obtain']} parts.obtain
 * @param {() => Promise<{ member: string }[]>} parts.members
 */
export function createFleetLogs ({ obtain, members }) {
  return {
    /** @param {Wanted} wanted @param {Person} person @returns {Promise<FleetLines>} @throws {DeckError} not-found */
    async list ({ member: only, lines = DEFAULT_LINES, ...wanted }, person) {
      const all = await members()
      const asked = only === undefined ? all : all.filter(({ member }) => member === only)
      if (asked.length === 0 && only !== undefined) throw noMember(only)
      const query = queryOf({ lines, ...wanted })
      const joined = createJoin({ lines, around: wanted.around })
      const { values, ...outcome } = await askAll(asked, async (member) => {
        const page = PAGE.safeParse(await obtain(member, { method: 'GET', path: `/logs?${query}` }, person, WITHIN)).data
        if (!page) throw new DeckError('not-possible', `${member} sent log lines that this version cannot read`)
        joined.add(member, page.items)
        return { isCut: page.next !== null && page.items.length < lines && wanted.around === undefined }
      })
      return { ...outcome, cut: values.filter(({ value }) => value.isCut).map(({ member }) => member), ...joined.result() }
    }
  }
}

/** @param {Wanted} wanted */
function queryOf ({ lines, stream, q, level, since, until, around }) {
  const query = new URLSearchParams({ lines: String(lines) })
  if (stream !== undefined) query.set('stream', stream)
  if (q !== undefined) query.set('q', q)
  if (level !== undefined) query.set('level', level.join())
  if (since !== undefined) query.set('since', isoOf(since))
  if (around === undefined) query.set('until', until === undefined ? END_OF_TIME : isoOf(until))
  else query.set('around', isoOf(around))
  return query
}

/**
 * Takes the answers one by one, and keeps no more lines than are wanted.
 * @param {{ lines: number, around?: number }} wanted
 */
function createJoin ({ lines, around }) {
  /** @typedef {{ line: FleetLine, key: string }} Keyed `key`: its time, or that of the line before it */
  /** @type {Keyed[]} */
  let before = []
  /** @type {Keyed[]} */
  let after = []
  /** The time of the newest line that is left out. */
  let leftOut = ''
  const middle = around === undefined ? null : isoOf(around)

  return {
    /** @param {string} member @param {z.infer<typeof LINE>[]} items oldest first */
    add (member, items) {
      let key = ''
      const keyed = items.map((line) => {
        if (line.arrivedAt !== null && line.arrivedAt > key) key = line.arrivedAt
        return { line: { member, ...line }, key }
      })
      before = newest([...before, ...keyed.filter((each) => middle === null || each.key < middle)], middle === null ? lines : Math.ceil(lines / 2))
      if (middle !== null) after = [...after, ...keyed.filter((each) => each.key >= middle)].sort(byKey).slice(0, Math.floor(lines / 2))
      if (middle === null && items.length >= lines && keyed[0].key > leftOut) leftOut = keyed[0].key
    },

    /** @returns {{ items: FleetLine[], next: string | null }} */
    result () {
      // What was written at the same time as a line that is left out comes with it, on the next page.
      const whole = before.filter(({ key }) => key > leftOut)
      const shown = whole.length > 0 || middle !== null ? whole : before
      const items = [...shown, ...after].map(({ line }) => line)
      if (leftOut === '' || middle !== null) return { items, next: null }
      return { items, next: isoOf(Date.parse(leftOut) + (shown === whole ? 1 : 0)) }
    }
  }

  /** @param {Keyed[]} all @param {number} count */
  function newest (all, count) {
    const sorted = all.sort(byKey)
    const last = sorted.at(-count - 1)
    if (last && middle === null && last.key > leftOut) leftOut = last.key
    return sorted.slice(-count)
  }
}

/** @param {{ key: string }} one @param {{ key: string }} other */
function byKey (one, other) {
  return one.key < other.key ? -1 : Number(one.key > other.key)
}

/** @param {number} ms */
function isoOf (ms) {
  return new Date(ms).toISOString()
}
