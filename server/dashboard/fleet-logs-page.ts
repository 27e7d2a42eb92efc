import { z } from 'zod'
import { fleetLines, fleetLogFilters, type FleetLogLine } from '../api/fleet-logs.ts'
import { parseFields, textParam } from '../api/input.ts'
import { PLACE } from '../config/line-place.ts'
import { VIEWER } from './fleet-member-cache.ts'
import { urlOn } from './fleet-members.ts'
import { levelsOf, lineMaker, queryOf, viewOf, withoutLines, withOneLevelField, type View } from './logs-page.ts'
import type { FleetDeck } from '../api/fleet.ts'

/**
 * The logs of all members of the fleet: the newest lines, all or those that are searched for; older ones; or what all
 * wrote around a line.
 */
/** as in the URL */
type Texts = Partial<Record<'member' | 'stream' | 'q' | 'level' | 'since' | 'until' | 'around' | 'line', string>>

const PATH = '/fleet/logs'
const SHOWN_LINES = 200
/** A member and the place of a line there. */
const LINE_NAME = new RegExp(`^[\\w.-]{1,100}:${PLACE.source.slice(1)}`)

export async function fleetLogsModel (
  { deck, params: given, now }: { deck: FleetDeck, params: URLSearchParams, now: () => number }
) {
  const params = withOneLevelField(given)
  const members = deck.fleet?.status().members ?? []
  const choices = { members: members.map(({ member }) => member) }
  try {
    const { texts, values: { line, ...values } } = parseFields(
      z.object({ ...fleetLogFilters(now), line: textParam('a line of a member', LINE_NAME) }),
      params
    )
    const { around } = values
    // What was searched for is marked around a line, and is the way back. A range is refused there, as on the page of
    // one deck.
    const wanted = around === undefined ? values : { ...values, q: undefined, level: undefined }
    const { items, next, silent, refused, cut } = await fleetLines(deck, { ...wanted, lines: SHOWN_LINES }, VIEWER)
    const view = viewOf({ around, until: values.until })
    const mark = line ?? null
    const lines = items.map(lineOf(texts, mark))
    const marked = items.find((item) => nameOf(item) === mark)
    return {
      path: PATH,
      now: now(),
      choices,
      levels: levelsOf(values.level, lines),
      query: texts,
      view,
      problem: null,
      lines,
      leftOut: { silent, refused, cut },
      places: '',
      around: view === 'around' && !marked ? texts.around : null,
      isCutShort: false,
      markLinks: marked ? linksOfMark(marked, texts, members) : [],
      canonicalUrl: `${PATH}${queryOf(texts)}`,
      // Not what a host whose clock is ahead has written: it would hide what the others write until then.
      links: linksOf(texts, view, { next, since: items.findLast(({ arrivedAt }) =>
        arrivedAt !== null && Date.parse(arrivedAt) <= now()
      )?.arrivedAt ?? null })
    }
  } catch (error) {
    return { path: PATH, now: now(), choices, leftOut: { silent: [], refused: [], cut: [] }, canonicalUrl: PATH,
      ...withoutLines(error, params) }
  }
}

function nameOf ({ member, place }: FleetLogLine) {
  return `${member}:${place}`
}

function lineOf ({ q, level }: Texts, mark: string | null) {
  const toShown = lineMaker({ q, level })
  return (item: FleetLogLine) => ({ ...toShown(item, { isMark: nameOf(item) === mark }), member: item.member,
    url: item.arrivedAt && `${PATH}${queryOf({ q, level, around: item.arrivedAt, line: nameOf(item) })}#log-mark` })
}

function linksOfMark ({ member, place }: FleetLogLine, { q, level, around, line }: Texts,
  members: { member: string, isOwn: boolean, url: string | null }[]): { label: string, url: string }[]
{
  const there = urlOn(members.find((each) => each.member === member),
    `/logs${queryOf({ q, level, around: place })}#log-mark`)
  return [{ label: `Only ${member}`, url: `${PATH}${queryOf({ q, level, member, around, line })}#log-mark` },
    ...(there ? [{ label: `Logs of ${member}`, url: there }] : [])]
}

function linksOf (texts: Texts, view: View, { next, since }: { next: string | null, since: string | null }) {
  const { member, stream, q, level } = texts
  const selection = queryOf({ member, stream })
  const query = queryOf({ ...texts, since: undefined })
  return { text: null, ndjson: null, stream: null,
    poll: view === 'live' ? `/api/v1/fleet/logs${query}${query ? '&' : '?'}` : null, since, all: `${PATH}${selection}`,
    back: `${PATH}${queryOf(view === 'around' ? { q, level } : { ...texts, until: undefined })}`,
    older: next === null ? null : `${PATH}${queryOf({ ...texts, until: next })}`, later: null }
}
