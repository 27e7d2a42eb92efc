import { z } from 'zod'
import { PLACE } from '../config/line-place.ts'
import { missingIn, NO_HOSTS } from '../api/ask.ts'
import { parseFields, textParam } from '../api/input.ts'
import { MAX_JOINED_LINES, type JoinedLine, type JoinedLines, type Whose } from './api-joined.ts'
import { lineFilters, SELECTION, type Query } from './api-lines.ts'
import { DOWNLOAD_LINES, fileLinks, fileText, levelsOf, lineMaker, queryOf, viewOf, wantedOf, withListsJoined,
  withoutLines, type FileType, type View } from './page.ts'

/**
 * The page of the logs for several hosts or apps: the newest lines, all or those that are searched for; older ones; or
 * what all wrote around a line.
 */
/** as in the URL */
type Texts = Partial<
  Record<Whose | 'stream' | 'q' | 'level' | 'since' | 'until' | 'cursor' | 'around' | 'line', string>
>
/**
 * `field`: that chooses them; `poll`: where the browser asks for what is new; `urlOn`: a page of one of them; null:
 * nobody knows where it is
 */
export type Kind = { whose: Whose, field: z.ZodType, poll: string,
  find: (query: Query & { member?: string, app?: string[] }) => Promise<JoinedLines>,
  urlOn: (name: string, path: string) => string | null }

const PATH = '/logs'
/** Names a line of several hosts or apps: whose it is, and its place there. */
const LINE_NAME = new RegExp(`^[\\w.-]{1,100}:${PLACE.source.slice(1)}`)

type Asked = { params: URLSearchParams, now: () => number }

export async function joinedLogsModel (kind: Kind, { now, ...asked }: Asked) {
  const params = withListsJoined(asked.params)
  const { whose } = kind
  const nameOf = (line: JoinedLine) => `${line[whose]}:${line.place}`
  try {
    const { texts: given, values: { line: mark, ...values } } = parseSelection(kind, params, now)
    const texts: Texts = given
    const { items, next, hosts } = await kind.find({ ...wantedOf(values), lines: MAX_JOINED_LINES })
    const view = viewOf(values)
    const toShown = lineMaker(texts)
    const lines = items.map((item) => ({ ...toShown(item, { isMark: nameOf(item) === mark }), whose: item[whose],
      url: item.arrivedAt &&
        linkTo({ [whose]: texts[whose], q: texts.q, level: texts.level, around: item.arrivedAt, line: nameOf(item) }) })
    )
    const marked = items.find((item) => nameOf(item) === mark)
    // Not what a host whose clock is ahead has written: it would hide what the others write until then.
    const since = items.findLast(({ arrivedAt }) => arrivedAt !== null && Date.parse(arrivedAt) <= now())?.arrivedAt ??
      null
    return { path: PATH, now: now(), levels: levelsOf(values.level, lines), query: texts, view, problem: null, lines,
      hosts, places: '', around: view === 'around' && !marked ? texts.around : null, isCutShort: false,
      markLinks: marked ? linksOfMark(kind, marked, texts) : [], canonicalUrl: `${PATH}${queryOf(texts)}`,
      links: linksOf(kind, texts, view, { next, since }) }
  } catch (error) {
    return { path: PATH, now: now(), hosts: NO_HOSTS, canonicalUrl: PATH, ...withoutLines(error, params) }
  }
}

/**
 * The selected lines as a file, as on the page of one deck. Text says first who is left out.
 * @throws {DeckError} invalid-query, not-found, no-fleet, fleet-away
 */
export async function joinedLogsFile (kind: Kind, { params, now, type }: Asked & { type: FileType }): Promise<string> {
  const { line: _, ...values } = parseSelection(kind, withListsJoined(params), now).values
  let { cursor } = values
  let items: JoinedLine[] = []
  const left: Set<string> = new Set()
  do {
    const page = await kind.find({ ...wantedOf(values), cursor, lines: MAX_JOINED_LINES })
    items = [...page.items, ...items]
    for (const name of missingIn(page.hosts)) left.add(name)
    cursor = page.next ?? undefined
  } while (cursor !== undefined && items.length + MAX_JOINED_LINES <= DOWNLOAD_LINES)
  const heading = type === 'text' && left.size > 0 ? `# left out: ${[...left].join(', ')}\n` : ''
  return heading + fileText(items, type)
}

/** @throws {DeckError} invalid-query */
function parseSelection ({ whose, field }: Kind, params: URLSearchParams, now: () => number) {
  return parseFields(
    z.object({ [whose]: field, ...SELECTION, ...lineFilters(now), line: textParam('a line of several', LINE_NAME) }),
    params
  )
}

function linksOfMark ({ whose, urlOn }: Kind, line: JoinedLine, { q, level, ...texts }: Texts) {
  const name = String(line[whose])
  const there = urlOn(name, linkTo({ q, level, around: line.place }))
  return [{ label: `Only ${name}`, url: linkTo({ q, level, [whose]: name, around: texts.around, line: texts.line }) },
    ...(there ? [{ label: `Logs of ${name}`, url: there }] : [])]
}

function linkTo (texts: Texts) {
  return `${PATH}${queryOf(texts)}#log-mark`
}

function linksOf ({ whose, poll }: Kind, texts: Texts, view: View,
  { next, since }: { next: string | null, since: string | null })
{
  const { stream, q, level } = texts
  const chosen = { [whose]: texts[whose] }
  const query = queryOf({ ...texts, since: undefined })
  return { ...fileLinks(queryOf({ ...texts, line: undefined })), stream: null, since,
    poll: view === 'live' ? `${poll}${query}${query === '' ? '?' : '&'}` : null,
    all: `${PATH}${queryOf({ ...chosen, stream })}`,
    back: `${PATH}${
      queryOf(view === 'around' ? { ...chosen, q, level } : { ...texts, until: undefined, cursor: undefined })
    }`, older: next === null ? null : `${PATH}${queryOf({ ...texts, cursor: next })}`, later: null }
}
