import { z } from 'zod'
import { parseFields } from '../api/input.ts'
import { sentenceOf } from '../events/sentences.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
import { readOr } from './read-or.ts'
import { besideSlot, toWorkerRow, WORKER_KINDS } from './worker-row.ts'
import { workerUrlOf } from './worker-url.ts'
import type { Status, WorkerRow } from '../deck.ts'

/**
 * The table of workers on the overview: which rows it shows, and in which order. Both are in the address of the page,
 * so that live updates keep to them.
 */
type History = Pick<import('../../db/history.ts').History, 'page'>
type Row = ReturnType<typeof rowsOf>[number]
/** as in the URL */
type Wanted = Partial<Record<'sort' | 'order' | 'show' | 'q', string>>
/** an order that was shown at that time */
export type Kept = { by: string, at: number, keys: string[] }

/** Columns that the table of a Node program alone has, and those that the table of another program alone has. */
const NOT_OF_PROGRAMS = ['requests', 'p99']
const OF_PROGRAMS = ['connections']

/** So many are seen at a glance. Of more the table shows the first ones, until somebody asks for all. */
const GLANCE = 12
/** Rows that moved with each new figure could neither be read nor clicked. */
const KEEP_ORDER_MS = 5000
/** So many exits are searched for the last one of a slot. */
const MAX_EXITS = 100
/**
 * How sick a row is. What a rollout does (starting, draining) does not count: rows that moved with it could not be
 * followed.
 */
const SEVERITY: Partial<Record<string, number>> = Object.freeze({ bad: 2, warn: 1 })

/** `choice`: in a list of orders; `isAscending`: where nobody has said otherwise */
const COLUMNS: Readonly<
  Record<string,
    { label: string, choice: string, isAscending?: boolean, isFigure?: boolean,
      keyOf: (row: Row) => number | null | undefined }>
> = Object.freeze({ state: { label: 'State', choice: 'Sick first', keyOf: ({ severity }) => severity },
  slot: { label: 'Slot', choice: 'Slot', isAscending: true, keyOf: ({ slot }) => slot },
  uptime: { label: 'Uptime', choice: 'Uptime',
    keyOf: ({ pid, startedAt }) => pid === null || startedAt === null ? null : -Date.parse(startedAt) },
  restarts: { label: 'Restarts', choice: 'Restarts', keyOf: ({ restarts }) => restarts },
  requests: { label: 'Req/s', choice: 'Requests', isFigure: true, keyOf: ({ vitals }) => vitals?.requestsPerSecond },
  p99: { label: 'p99', choice: 'p99', isFigure: true, keyOf: ({ vitals }) => vitals?.latencyP99Ms },
  connections: { label: 'Connections', choice: 'Connections', isFigure: true,
    keyOf: ({ vitals }) => vitals?.openConnections },
  memory: { label: 'Memory', choice: 'Memory', isFigure: true, keyOf: ({ vitals }) => vitals?.rssBytes },
  cpu: { label: 'CPU', choice: 'CPU', isFigure: true, keyOf: ({ vitals }) => vitals?.cpuPercent } })

const SHOWN = Object.freeze(['all', 'canary', ...Object.keys(WORKER_KINDS)])
const FIELDS = z.object({
  sort: z.enum(Object.keys(COLUMNS)).optional().describe(`one of ${Object.keys(COLUMNS).join(', ')}`),
  order: z.enum(['asc', 'desc']).optional().describe('asc or desc'),
  show: z.enum(SHOWN).optional().describe(`one of ${SHOWN.join(', ')}`),
  q: z.string().max(100).optional().describe('at most 100 characters')
})

/**
 * @param asked `kept`: the order of the last time; `isProgram`: it runs something else than Node
 * @returns the model of the table; `problem` holds what is wrong with the address, if anything
 */
export function workersTable (snapshot: Status,
  { params, history, now, kept = null, isProgram = false }: { params: URLSearchParams, history: History, now: number,
    kept?: Kept | null, isProgram?: boolean })
{
  const { wanted, problem } = readWanted(params)
  const { sort = 'state', show, q = '' } = wanted
  const others = Object.fromEntries([...params].filter(([name]) => !Object.hasOwn(FIELDS.shape, name)))
  const link = (changes: Wanted) => urlOf('/', { ...others, ...wanted, ...changes })
  const isAscending = COLUMNS[sort].isAscending ? wanted.order !== 'desc' : wanted.order === 'asc'
  const all = rowsOf(snapshot, history)
  const order = keepOrder(all, { sort, isAscending, now, kept })
  const found = order.rows.filter((row) => isShown(row, show) && isMeant(row, q))
  const isCut = found.length > GLANCE && show === undefined && q === ''
  return { all, rows: (isCut ? found.slice(0, GLANCE) : found).map(besideSlot), found: found.length,
    canaries: all.filter(({ isCanary }) => isCanary), isMany: all.length > GLANCE,
    isNarrowed: q !== '' || (show !== undefined && show !== 'all'), sort, order: wanted.order, show, q, others,
    columns: Object.fromEntries(
      Object.entries(COLUMNS).map((
        [name, { label }]
      ) => [name, { label, ariaSort: name === sort ? (isAscending ? 'ascending' : 'descending') : null,
        url: link(linkOf(name, { sort, isAscending })) }]
      )
    ),
    choices: Object.entries(COLUMNS).filter(([name]) => !(isProgram ? NOT_OF_PROGRAMS : OF_PROGRAMS).includes(name))
      .map(([name, { choice }]) => ({ name, label: choice })), kinds: kindsOf(all, { show, link }),
    links: { all: link({ show: 'all', q: undefined }), glance: link({ show: undefined, q: undefined }) },
    canonicalUrl: link({}), problem, kept: order.kept }
}

function readWanted (params: URLSearchParams): { wanted: Wanted, problem: ReturnType<typeof toShownProblem> | null } {
  try {
    return { wanted: parseFields(FIELDS, params).texts, problem: null }
  } catch (error) {
    return { wanted: {}, problem: toShownProblem(error) }
  }
}

function rowsOf ({ workers, rollout }: Status, history: History) {
  const canaries = canariesOf(rollout)
  const ends = workers.some(({ id }) => id === null) ? lastEnds(history) : new Map()
  /** by slot, so that its workers stay together */
  const severities: Map<number, number> = new Map()
  const rows = workers.map((worker: WorkerRow & { url?: string }) => toWorkerRow(worker))
  for (const { slot, badge } of rows)
    severities.set(slot, Math.max(severities.get(slot) ?? 0, SEVERITY[badge.tone] ?? 0))
  return rows.map((row) => {
    const last = row.id === null ? ends.get(row.slot) ?? null : null
    return { ...row, last, severity: severities.get(row.slot) ?? 0,
      isCanary: row.id !== null && canaries.includes(row.id),
      url: row.url ??
        (row.id === null ? last?.url ?? `/history?type=worker.exited&slot=${row.slot}` : workerUrlOf(row.id)),
      title: titleOf(row, last) }
  })
}

function canariesOf (rollout: Status['rollout']): (number | null)[] {
  return rollout && (rollout.pausedIn ?? rollout.state) === 'canary'
    ? rollout.steps.map(({ newWorker }) => newWorker)
    : []
}

function lastEnds (history: History): Map<number | null, { worker: number, url: string, why: string }> {
  const items = readOr(() => history.page({ type: ['worker.exited'], limit: MAX_EXITS }).items, [])
  const ends = items.toReversed().filter(({ worker }) => worker !== null)
  return new Map(
    ends.map((
      event
    ) => [event.slot, { worker: Number(event.worker), url: workerUrlOf(Number(event.worker), event.at),
      why: sentenceOf(event) }]
    )
  )
}

function titleOf ({ id, slot, badge, held }: ReturnType<typeof toWorkerRow>, last: { why: string } | null) {
  const who = id === null ? '' : `worker ${id}, `
  return `Slot ${slot}: ${who}${badge.label.toLowerCase()}${held ? ` for ${held}` : ''}${last ? `. ${last.why}` : ''}`
}

function keepOrder (all: Row[],
  { sort, isAscending, now, kept }: { sort: string, isAscending: boolean, now: number, kept: Kept | null }
): { rows: Row[], kept: Kept } {
  const by = `${sort} ${isAscending}`
  const places = new Map(kept?.by === by ? kept.keys.map((key, place) => [key, place]) : [])
  if (kept && COLUMNS[sort].isFigure && now - kept.at < KEEP_ORDER_MS && all.every(({ key }) => places.has(key))) {
    return { rows: all.toSorted((a, b) => Number(places.get(a.key)) - Number(places.get(b.key))), kept }
  }
  const rows = sortRows(all, { sort, isAscending })
  return { rows, kept: { by, at: now, keys: rows.map(({ key }) => key) } }
}

/** @returns what is not known comes last */
function sortRows (all: Row[], { sort, isAscending }: { sort: string, isAscending: boolean }): Row[] {
  const { keyOf } = COLUMNS[sort]
  const none = isAscending ? Infinity : -Infinity
  const keys = new Map(all.map((row) => [row, keyOf(row) ?? none]))
  const compare = (a: Row, b: Row) => Number(keys.get(a)) - Number(keys.get(b)) || 0
  return all.toSorted((a, b) => isAscending ? compare(a, b) : compare(b, a))
}

function isShown ({ kind, isCanary }: Row, show: string = 'all') {
  return show === 'all' || (show === 'canary' ? isCanary : kind === show)
}

/** `q`: the whole number of a slot, a worker or a process, or a release */
function isMeant ({ id, slot, pid, release }: Row, q: string) {
  return q === '' || [slot, id, id === null ? null : `#${id}`, pid, release].some((each) => String(each) === q)
}

function linkOf (name: string, { sort, isAscending }: { sort: string, isAscending: boolean }): Wanted {
  const usual = COLUMNS[name].isAscending ?? false
  const next = name === sort ? !isAscending : usual
  return { sort: name === 'state' ? undefined : name, order: next === usual ? undefined : next ? 'asc' : 'desc' }
}

function kindsOf (all: Row[], { show, link }: { show?: string, link: (changes: Wanted) => string }) {
  const kinds = [{ kind: undefined, label: 'All', tone: 'idle' },
    ...Object.entries(WORKER_KINDS).map(([kind, look]) => ({ kind, ...look })), { kind: 'canary', label: 'Canary',
    tone: 'info' }]
  return kinds.map((each) => ({ ...each, count: all.filter((row) => isShown(row, each.kind)).length,
    isCurrent: each.kind === (show === 'all' ? undefined : show), url: link({ show: each.kind, q: undefined }) })
  ).filter(({ count, isCurrent }) => count > 0 || isCurrent)
}
