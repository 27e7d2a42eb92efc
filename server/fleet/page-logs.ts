import { z } from 'zod'
import { NO_HOSTS, OF_MEMBER, VIEWER } from '../api/ask.ts'
import { fleetLines, type FleetLogLine } from './api-logs.ts'
import { parseFields, textParam } from '../api/input.ts'
import { lineFilters, SELECTION } from '../logs/api-lines.ts'
import { PLACE } from '../config/line-place.ts'
import { hostChoices, urlOn } from './page-members.ts'
import { levelsOf, lineMaker, queryOf, viewOf, withoutLines, withOneLevelField, type View } from '../logs/page.ts'
import type { FleetDeck } from './api.ts'

/**
 * The page of the logs for several hosts: the newest lines, all or those that are searched for; older ones; or what all
 * wrote around a line.
 */
/** as in the URL */
type Texts = Partial<
  Record<'member' | 'stream' | 'q' | 'level' | 'since' | 'until' | 'cursor' | 'around' | 'line', string>
>

const PATH = '/logs'
const SHOWN_LINES = 200
/** Names a line of several hosts: its member, and its place there. */
const LINE_NAME = new RegExp(`^[\\w.-]{1,100}:${PLACE.source.slice(1)}`)

export async function fleetLogsModel (
  { deck, params: given, now }: { deck: FleetDeck, params: URLSearchParams, now: () => number }
) {
  const params = withOneLevelField(given)
  const members = deck.fleet?.status().members ?? []
  const choices = hostChoices(deck)
  try {
    const { texts, values: { line, member = '*', ...values } } = parseFields(
      z.object({ member: OF_MEMBER, ...SELECTION, ...lineFilters(now),
        line: textParam('a line of a member', LINE_NAME) }),
      params
    )
    const { around } = values
    // What was searched for is marked around a line, and is the way back. A range is refused there, as on the page of
    // one deck.
    const wanted = around === undefined ? values : { ...values, q: undefined, level: undefined }
    const { items, next, hosts } = await fleetLines(deck, { ...wanted, member, lines: SHOWN_LINES }, VIEWER)
    const view = viewOf(values)
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
      hosts,
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
    return { path: PATH, now: now(), choices, hosts: NO_HOSTS, canonicalUrl: PATH, ...withoutLines(error, params) }
  }
}

function nameOf ({ member, place }: FleetLogLine) {
  return `${member}:${place}`
}

function lineOf ({ member, q, level }: Texts, mark: string | null) {
  const toShown = lineMaker({ q, level })
  return (item: FleetLogLine) => ({ ...toShown(item, { isMark: nameOf(item) === mark }), member: item.member,
    url: item.arrivedAt &&
      `${PATH}${queryOf({ member, q, level, around: item.arrivedAt, line: nameOf(item) })}#log-mark` })
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
  const query = queryOf({ ...texts, since: undefined })
  return { text: null, ndjson: null, stream: null, poll: view === 'live' ? `/api/v1/logs${query}&` : null, since,
    all: `${PATH}${queryOf({ member, stream })}`,
    back: `${PATH}${
      queryOf(view === 'around' ? { member, q, level } : { ...texts, until: undefined, cursor: undefined })
    }`, older: next === null ? null : `${PATH}${queryOf({ ...texts, cursor: next })}`, later: null }
}
