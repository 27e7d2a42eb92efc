import { formatLatency, formatPercent } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { formatTable } from './output.js'

/** @typedef {import('../api/routes.js').RouteRow} RouteRow */

const FILTERS = /** @type {const} */ (['since', 'release', 'compare'])
/** By which the table can be sorted, the highest first. @type {Readonly<Record<string, (row: RouteRow) => number>>} */
const SORTS = Object.freeze({ requests: ({ requests }) => requests, errors: ({ errors }) => errors, p50: ({ p50Ms }) => p50Ms, p99: ({ p99Ms }) => p99Ms })

/** Prints which routes are slow, or fail. @param {import('./commands.js').Context} context */
export async function routesCommand ({ api, options, answer }) {
  const { sort } = options
  if (sort !== undefined && !Object.hasOwn(SORTS, sort)) throw new DeckError('usage', `--sort: expected one of ${Object.keys(SORTS).join(', ')}, received ${JSON.stringify(sort)}`)
  const query = new URLSearchParams()
  for (const name of FILTERS) if (options[name] !== undefined) query.set(name, options[name])
  const list = await api.get(`/routes?${query}`)
  const valueOf = sort === undefined ? () => 0 : SORTS[sort]
  list.items.sort((/** @type {RouteRow} */ one, /** @type {RouteRow} */ other) => valueOf(other) - valueOf(one))
  answer(list, () => list.items.length === 0 ? 'no requests' : routesText(list))
}

/** @param {import('../api/routes.js').RouteList} list */
function routesText ({ items, compare }) {
  const head = ['REQUESTS', 'ERRORS', 'ERROR RATE', 'P50', 'P99', ...(compare === null ? [] : [`P99 OF ${compare}`, `ERROR RATE OF ${compare}`]), 'ROUTE']
  return formatTable(head, items.map(({ route, before, ...row }) => [
    row.requests, row.errors, rateOf(row), formatLatency(row.p50Ms), formatLatency(row.p99Ms),
    ...(compare === null ? [] : [before && formatLatency(before.p99Ms), before && rateOf(before)]), route
  ]), { right: head.map((_, column) => column).slice(0, -1) })
}

/** @param {{ requests: number, errors: number }} row */
function rateOf ({ requests, errors }) {
  return formatPercent(100 * errors / requests)
}
