import { formatLatency, formatPercent } from '../../public/format.ts'
import { tableText } from '../cli/actions.ts'
import { checkedWord, queryOf } from '../cli/usage.ts'
import type { RouteList, RouteRow } from './api-routes.ts'
import type { Context } from '../cli/commands.ts'
import type { Columns } from '../cli/output.ts'

/** By which the table can be sorted, the highest first. */
const SORTS: Readonly<Record<string, (row: RouteRow) => number>> = Object.freeze({ requests: ({ requests }) => requests,
  errors: ({ errors }) => errors, p50: ({ p50Ms }) => p50Ms, p99: ({ p99Ms }) => p99Ms })

export async function routesCommand ({ api, options, answer }: Context) {
  const { sort } = options
  const valueOf = sort === undefined ? () => 0 : SORTS[checkedWord('--sort', Object.keys(SORTS), sort)]
  const list = await api.get<RouteList>(`/routes?${queryOf(options, ['since', 'release', 'compare'])}`)
  list.items.sort((one, other) => valueOf(other) - valueOf(one))
  answer(list, () => routesText(list))
}

function routesText ({ items, compare }: RouteList) {
  const before: Columns<RouteRow> = compare === null ?
    {} :
    { [`P99 OF ${compare}`]: [true, ({ before }) => before && formatLatency(before.p99Ms)],
      [`ERROR RATE OF ${compare}`]: [true, ({ before }) => before && rateOf(before)] }
  return tableText<RouteRow>({ REQUESTS: [true, 'requests'], ERRORS: [true, 'errors'], 'ERROR RATE': [true, rateOf],
    P50: [true, ({ p50Ms }) => formatLatency(p50Ms)], P99: [true, ({ p99Ms }) => formatLatency(p99Ms)], ...before,
    ROUTE: 'route' }, 'no requests')({ items })
}

function rateOf ({ requests, errors }: { requests: number, errors: number }) {
  return formatPercent(100 * errors / requests)
}
