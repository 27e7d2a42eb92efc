import { DeckError, unless } from '../server/errors.ts'
import { beforeOf, cursorAt, type EventQuery } from './event-search.ts'
import type { DeckEvent } from '../server/events/stream.ts'
import type { History } from './history.ts'

/** The histories of the apps of a host, read as one. */
type Reads = Pick<History, 'page' | 'count' | 'times'>
/** `app`: null: of the host itself */
export type Source = { app: string | null, history: Reads }
/** Where the next page of a source begins: below this id. */
type Place = Source & { before: number }

const PLACE = /^([\w.-]*):(\d{1,15})?$/
/** An app whose history cannot be read at the moment, or has lost that page, keeps nobody from reading the others. */
const MISSING: readonly string[] = ['history-unavailable', 'cursor-expired']

/** `opened`: null: the app does not run; `own`: of the host itself. Returns what reads those of some apps as one. */
export function pastOf (opened: (app: string) => { history: Reads } | null, own: Reads) {
  return (apps: readonly string[], isWhole: boolean) =>
    joinHistories([...(isWhole ? [{ app: null, history: own }] : []), ...apps.flatMap((app) => {
      const history = opened(app)?.history
      return history ? [{ app, history }] : []
    })])
}

/** Each call is bounded by the number of apps. */
export function joinHistories (sources: readonly Source[]): Reads {
  return {
    /** Newest first, each event with its `app`. */
    page ({ cursor, limit = 100, ...query }: EventQuery = {}) {
      const heads = placesAt(cursor).map((place) => ({ ...place, taken: 0,
        ...unless(MISSING, () => place.history.page({ ...query, limit, cursor: cursorOf(place) }), { items: [],
          next: null }) })
      )
      const items: DeckEvent[] = []
      while (items.length < limit) {
        // One that had no time to look further back may have newer events than the others.
        if (heads.some((head) => head.taken === head.items.length && head.next !== null)) break
        const newest = heads.filter((head) => head.taken < head.items.length).reduce<typeof heads[number] | null>(
          (best, head) => best && best.items[best.taken].at >= head.items[head.taken].at ? best : head,
          null
        )
        if (!newest) break
        items.push({ ...newest.items[newest.taken++], app: newest.app })
      }
      return { items,
        next: encodePlaces(
          heads.flatMap(({ items, taken, next, ...place }) =>
            taken < items.length
              ? [{ ...place, before: items[taken].id + 1 }]
              : next === null
              ? []
              : [{ ...place, before: beforeOf(next) }]
          )
        ) }
    },

    /** Counts a part of one history in each call. */
    count ({ cursor, ...query }) {
      const [first, ...others] = placesAt(cursor)
      if (!first) return { counts: [], next: null, reachedMs: null }
      const { counts, next, reachedMs } = unless(MISSING,
        () => first.history.count({ ...query, cursor: cursorOf(first) }), { counts: [], next: null, reachedMs: null })
      const left = next === null ? others : [{ ...first, before: beforeOf(next) }, ...others]
      return { counts, next: encodePlaces(left),
        reachedMs: left.length === 0
          ? null
          : Math.max(reachedMs ?? 0, ...others.map(({ history }) => history.times()?.newestMs ?? 0)) }
    },

    times () {
      const known = sources.flatMap(({ history }) => unless(MISSING, () => history.times()) ?? [])
      return known.length === 0 ?
        null :
        { oldestMs: Math.min(...known.map(({ oldestMs }) => oldestMs)),
          newestMs: Math.max(...known.map(({ newestMs }) => newestMs)) }
    }
  }

  /** Those that are not read to their end. @throws {DeckError} `invalid-query` */
  function placesAt (cursor: string | null | undefined): Place[] {
    if (cursor === undefined || cursor === null) return sources.map((source) => ({ ...source, before: Infinity }))
    return Buffer.from(cursor, 'base64url').toString('latin1').split(',').flatMap((text) => {
      const [known, name, before] = PLACE.exec(text) ?? []
      if (known === undefined)
        throw new DeckError('invalid-query', 'cursor: expected the "next" of an earlier page, received another text')
      const source = sources.find(({ app }) => (app ?? '') === name)
      return source ? [{ ...source, before: before === undefined ? Infinity : Number(before) }] : []
    })
  }
}

function encodePlaces (places: Place[]): string | null {
  if (places.length === 0) return null
  const texts = places.map(({ app, before }) => `${app ?? ''}:${before === Infinity ? '' : before}`)
  return Buffer.from(texts.join()).toString('base64url')
}

function cursorOf ({ before }: Place) {
  return before === Infinity ? null : cursorAt(before)
}
