import { formatExactDuration } from '../../public/format.ts'
import { readOr } from '../dashboard/read-or.ts'
import { toShownEvent } from '../events/page-shown-event.ts'
import type { Deck as WholeDeck } from '../deck.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { Span } from '../dashboard/time-strip.ts'

type Deck = Pick<WholeDeck, 'snapshot' | 'openRequests' | 'crashes'>

const MAX_READ = 200
const MAX_SHOWN = 10

/** The requests of a route that no worker has answered yet, and that took longer than nearly all do. */
export async function slowInFlight ({ deck, route, p99Ms }: { deck: Deck, route: string, p99Ms: number }) {
  // Of a worker that cannot answer, the others are shown.
  const lists = await Promise.all(
    deck.snapshot().workers.map(async ({ id }) =>
      (await deck.openRequests(Number(id)).catch(() => null))?.items.map((each) => ({ ...each, worker: id })) ?? []
    )
  )
  return lists.flat().filter((each) => each.ageMs > p99Ms && isOfRoute(each, route)).sort((one, other) =>
    other.ageMs - one.ageMs
  ).slice(0, MAX_SHOWN).map((each) => ({ ...each, age: formatExactDuration(each.ageMs) }))
}

/** What the history tells of a route, newest first: its slow spells, and workers that hung in it. */
export function slowPast (
  { deck, history, route, chosen }: { deck: Deck, history: Pick<History, 'page'>, route: string, chosen: Span | null }
) {
  const read = (query: Parameters<typeof history.page>[0]) =>
    readOr(
      () =>
        history.page({ ...query, limit: MAX_READ, ...(chosen && { since: chosen.sinceMs, until: chosen.untilMs }) })
          .items,
      []
    )
  const isSpell = ({ detail }: DeckEvent) => [detail?.route, ...Object(detail).others ?? []].includes(route)
  const isHang = ({ detail }: DeckEvent) =>
    readOr(() => deck.crashes.occurrence(Number(detail?.crashGroup), Number(detail?.crash)).requests ?? [], []).some((
      each
    ) => each.isHanging && isOfRoute(each, route))
  return [...read({ type: ['route.slowed', 'route.recovered'] }).filter(isSpell),
    ...read({ type: 'worker.exited', cause: 'hung' }).filter(isHang)].sort((one, other) => other.id - one.id).slice(0,
      MAX_SHOWN).map(toShownEvent)
}

/** Tells whether the route, a template or a folded path, has this path. */
function isOfRoute ({ method, path }: { method: string, path: string }, route: string): boolean {
  const [wanted, template = ''] = route.split(' ')
  const [own, parts] = [path, template].map((each) => each.split('/'))
  return method === wanted && (own.length === parts.length || template.includes('*')) &&
    parts.every((part, index) => /[:*{(<]/.test(part) || part === own[index])
}
