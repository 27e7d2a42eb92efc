import { formatLatency, formatPercent } from '../../public/format.ts'
import { formatTable } from './output.ts'
import { checkedWord, queryOf } from './usage.ts'
import type { RouteList, RouteRow } from '../api/routes.ts'
import type { Context } from './commands.ts'

/** By which the table can be sorted, the highest first. */
const SORTS: Readonly<Record<string, (row: RouteRow) => number>> = Object.freeze({ requests: ({ requests }) => requests,
  errors: ({ errors }) => errors, p50: ({ p50Ms }) => p50Ms, p99: ({ p99Ms }) => p99Ms })

/** Prints which routes are slow, or fail. */
export async function routesCommand ({ api, options, answer }: Context) {
  const { sort } = options
  const valueOf = sort === undefined ? () => 0 : SORTS[checkedWord('--sort', Object.keys(SORTS), sort)]
  const list = await api.get<RouteList>(`/routes?${queryOf(options, ['since', 'release', 'compare'])}`)
  list.items.sort((one, other) => valueOf(other) - valueOf(one))
  answer(list, () => list.items.length === 0 ? 'no requests' : routesText(list))
}

function routesText ({ items, compare }: RouteList) {
  const head = ['REQUESTS', 'ERRORS', 'ERROR RATE', 'P50', 'P99',
    ...(compare === null ? [] : [`P99 OF ${compare}`, `ERROR RATE OF ${compare}`]), 'ROUTE']
  return formatTable(head,
    items.map((
      { route, before, ...row }
    ) => [row.requests, row.errors, rateOf(row), formatLatency(row.p50Ms), formatLatency(row.p99Ms),
      ...(compare === null ? [] : [before && formatLatency(before.p99Ms), before && rateOf(before)]), route]
    ), { right: head.map((_, column) => column).slice(0, -1) })
}

function rateOf ({ requests, errors }: { requests: number, errors: number }) {
  return formatPercent(100 * errors / requests)
}
