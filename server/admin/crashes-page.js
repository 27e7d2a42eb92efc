import { DeckError } from '../errors.js'
import { sparkline } from './sparkline.js'

/**
 * What the pages about crashes show.
 * @typedef {{ crashes: ReturnType<typeof import('../crashes/desk.js').createCrashDesk> }} Deck
 * @typedef {Partial<Record<'state' | 'q' | 'release', string>>} Filters
 */

const PAGE_SIZE = 50
const TABS = Object.freeze([
  { value: 'open', label: 'Open' },
  { value: 'resolved', label: 'Resolved' },
  { value: 'muted', label: 'Muted' },
  { value: 'all', label: 'All' }
])

/** @type {Readonly<Record<string, { label: string, tone: import('./event-kinds.js').Tone }>>} */
const STATES = Object.freeze({
  open: { label: 'Open', tone: 'bad' },
  resolved: { label: 'Resolved', tone: 'ok' },
  muted: { label: 'Muted', tone: 'idle' }
})

/** What is drawn of a worker's last minute: column, title and how a value reads. */
const VITALS = /** @type {const} */ ([
  ['rssBytes', 'Memory', 'bytes'],
  ['cpuPercent', 'CPU', 'percent'],
  ['loopDelayP99Ms', 'Loop delay p99', 'ms'],
  ['latencyP99Ms', 'Latency p99', 'ms'],
  ['inFlight', 'In flight', 'count']
])

/** The elements of the pages that change, by id; each is the partial of the same name. */
export const CRASHES_FRAGMENTS = Object.freeze(['crash-groups'])
export const CRASH_FRAGMENTS = Object.freeze(['crash-head', 'crash-occurrences'])

/** @param {{ deck: Deck, params: URLSearchParams, now: number }} parts */
export function crashesModel ({ deck, params, now }) {
  try {
    const { cursor, ...filters } = readFilters(params)
    const { state = 'open', q, release } = filters
    const { items, next } = deck.crashes.page({ limit: PAGE_SIZE, ...given({ state: state === 'all' ? undefined : state, q, release, cursor }) })
    const link = (/** @type {Filters & { cursor?: string }} */ changes) => urlOf({ ...filters, ...changes })
    return {
      now,
      problem: null,
      filters: { ...filters, state },
      isFiltered: q !== undefined || release !== undefined,
      isFirstPage: cursor === undefined,
      groups: items.map(withTitle),
      tabs: TABS.map((tab) => ({ ...tab, url: link({ state: tab.value }), isCurrent: tab.value === state })),
      links: { next: next === null ? null : link({ cursor: next }), newest: cursor === undefined ? null : link({}), clear: urlOf({ state }) },
      canonicalUrl: link(cursor === undefined ? {} : { cursor })
    }
  } catch (error) {
    const { status, title, message } = toShown(error)
    const filters = /** @type {Filters} */ (Object.fromEntries([...params].map(([name, value]) => [name, value.slice(0, 100)])))
    return { now, problem: { status, title, message }, filters, isFiltered: true, isFirstPage: true, groups: [], tabs: TABS.map((tab) => ({ ...tab, url: urlOf({ state: tab.value }), isCurrent: false })), links: { next: null, newest: null, clear: '/crashes' }, canonicalUrl: '/crashes' }
  }
}

/**
 * @param {{ deck: Deck, id: string, params: URLSearchParams, now: number }} parts `params`: `crash` says which occurrence
 * @throws {DeckError} not-found, or the database's
 */
export function crashModel ({ deck, id, params, now }) {
  const group = deck.crashes.find(numberOf(id, 'crash group'))
  const chosen = params.get('crash')
  const record = chosen === null ? group.latest : { id: numberOf(chosen, 'crash'), ...deck.crashes.occurrence(group.id, numberOf(chosen, 'crash')) }
  return {
    now,
    group: withTitle(group),
    state: STATES[group.state],
    occurrences: group.occurrences,
    crash: record && { ...record, ...framesOf(record), vitals: vitalsOf(record.vitals ?? []) }
  }
}

/** @param {any} group */
function withTitle (group) {
  return { ...group, badge: STATES[group.state], title: titleOf(group) }
}

/** Names of what was thrown that is no error, see workers/crash-note.js. */
const PLAIN_VALUES = ['string', 'number', 'boolean', 'bigint', 'symbol', 'object', 'function', 'undefined', 'null']

/** What has no error's name ends by a code or a signal, which its message tells. @param {{ kind: string, errorName: string | null }} group @returns {string} */
function titleOf ({ kind, errorName }) {
  if (errorName !== null) return PLAIN_VALUES.includes(errorName) ? `Thrown: ${errorName}` : errorName
  return /** @type {Record<string, string>} */ ({
    'exit-code': 'Exited by itself',
    signal: 'Ended by a signal',
    'heap-out-of-memory': 'JavaScript heap out of memory',
    'kernel-out-of-memory': 'Killed by the kernel for its memory',
    hung: 'Hung',
    'boot-failure': 'Was not ready in time'
  })[kind] ?? kind
}

/** Frames of others between those of the app are folded: the first question is where in the app it was. */
function framesOf (/** @type {any} */ { frames = [] }) {
  /** @type {{ isInApp: boolean, frames: any[] }[]} */
  const runs = []
  for (const frame of frames) {
    const last = runs.at(-1)
    if (last && last.isInApp === frame.isInApp) last.frames.push(frame)
    else runs.push({ isInApp: frame.isInApp, frames: [frame] })
  }
  return { runs }
}

/** @param {any[]} samples one a second, oldest first */
function vitalsOf (samples) {
  if (samples.length === 0) return []
  return VITALS.map(([column, title, unit]) => {
    const values = samples.map((sample) => typeof sample[column] === 'number' ? sample[column] : null)
    return { title, unit, last: values.findLast((value) => value !== null) ?? null, max: values.reduce((/** @type {number} */ most, value) => Math.max(most, value ?? 0), 0), line: sparkline(values) }
  })
}

/** @param {URLSearchParams} params @returns {Filters & { cursor?: string }} @throws {DeckError} invalid-query */
function readFilters (params) {
  const read = (/** @type {string} */ name, /** @type {RegExp} */ pattern, /** @type {string} */ expected) => {
    const text = (params.get(name) ?? '').trim()
    if (text === '') return undefined
    if (!pattern.test(text)) throw new DeckError('invalid-query', `${name}: expected ${expected}, received ${JSON.stringify(text.slice(0, 60))}`)
    return text
  }
  return given({
    state: read('state', /^(open|resolved|muted|all)$/, 'open, resolved, muted or all'),
    q: read('q', /^.{1,100}$/s, 'at most 100 characters'),
    release: read('release', /^[\w.-]{1,64}$/, 'a release such as r1'),
    cursor: read('cursor', /^[\w-]{1,64}$/, 'the cursor of another page')
  })
}

/** @param {Filters & { cursor?: string }} filters */
function urlOf ({ state, ...rest }) {
  const params = new URLSearchParams(given({ state: state === 'open' ? undefined : state, ...rest }))
  return params.size === 0 ? '/crashes' : `/crashes?${params}`
}

/** @param {string} text @param {string} what */
function numberOf (text, what) {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new DeckError('not-found', `There is no ${what} ${JSON.stringify(text.slice(0, 40))}.`)
  return Number(text)
}

/** @param {Record<string, any>} values @returns {any} those that are there */
function given (values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** @param {unknown} error */
function toShown (error) {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster goes on; this page works again once the database does.' }
}
