import { formatBytes, formatLatency, formatPercent, formatRate } from '../../public/format.ts'
import { measured } from '../cli/decks-table.ts'
import { isOpen } from '../cli/host.ts'
import { byName } from '../cli/known-apps.ts'
import { placedLine, type Entry } from '../logs/cli.ts'
import { columnsTable, healthText, rolloutText, workersText, type Columns } from '../cli/output.ts'
import type { Row, Style } from '../cli/screen.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Status } from '../api/cluster.ts'

/**
 * What `clusterdeck top` shows, and what its keys change: apps above, the workers and the output of the chosen one
 * below.
 */

/** An app of a host, or a deck of its own. `key`: no other app has it; `isSilent`: nobody tells of it just now */
export type App = AppView & { key: string, isSilent: boolean }
export type Page = {
  apps: readonly App[],
  /** the key of an app */
  chosen: string | null,
  order: keyof typeof ORDERS,
  /** of the app with this key; `lines`: its output, oldest first */
  detail: { key: string, status: Status, lines: readonly Entry[] } | null,
  /** why some app is silent */
  problem: string | null
}
type Size = { rows: number, columns: number }

/** The sick ones come first. */
const TONES: readonly string[] = ['bad', 'warn', 'drain', 'info', 'ok', 'idle']
const STYLES: Readonly<Record<string, Style>> = Object.freeze({ bad: 'red', warn: 'yellow', idle: 'dim' })

/** In which order apps are shown; those that are alike are by name. */
const ORDERS: Readonly<Record<string, (app: App) => number>> = { health: (app) => TONES.indexOf(healthOf(app).tone),
  name: () => 0, CPU: ({ cpu }) => -(cpu ?? -1), memory: ({ memoryBytes }) => -(memoryBytes ?? -1),
  requests: ({ requestsPerSecond }) => -(requestsPerSecond ?? -1) }

const KEYS: Readonly<Record<string, (page: Page) => Page>> = { up: (page) => choose(page, -1),
  k: (page) => choose(page, -1), down: (page) => choose(page, 1), j: (page) => choose(page, 1),
  o: (page) => ({ ...page, order: after(Object.keys(ORDERS), page.order) }) }

const COLUMNS: Columns<App, null> = { APP: 'name',
  READY: [true, ({ workers }) => workers && `${workers.ready}/${workers.desired}`],
  CPU: [true, ({ cpu }) => measured(cpu, formatPercent)],
  MEMORY: [true, ({ memoryBytes }) => measured(memoryBytes, formatBytes)],
  'REQ/S': [true, ({ requestsPerSecond }) => measured(requestsPerSecond, formatRate)],
  P99: [true, ({ p99Ms }) => measured(p99Ms, formatLatency)], RESTARTS: [true, 'restarts'],
  HEALTH: (app) => app.isSilent ? 'no answer' : healthOf(app).text }
const WORKER_COLUMNS = ['SLOT', 'WORKER', 'PID', 'CPU', 'MEMORY', 'REQ/S', 'P99', 'CONNS', 'RESTARTS', 'UPTIME',
  'RELEASE', 'STATE']
/** Where a terminal is narrow, these are left out, the first ones first. */
const FIRST_TO_GO = ['UPTIME', 'RELEASE', 'WORKER', 'PID', 'RESTARTS', 'P99', 'REQ/S', 'CONNS', 'MEMORY']
/** What a health or a state takes at least. */
const WORDS_WIDTH = 16

/** Which part of the rows the apps may have at most, and the workers of what is left. */
const SHARE_OF_APPS = 0.5
const SHARE_OF_WORKERS = 0.5

/** `wanted`: the data folder of the app that is chosen, where it is there */
export function createPage (apps: readonly App[], wanted: string | null): Page {
  const page: Page = { apps: [],
    chosen: apps.find(({ dataDir }) => dataDir !== null && dataDir === wanted)?.key ?? null, order: 'health',
    detail: null, problem: null }
  return withApps(page, apps)
}

/** Where the chosen app is gone, another one is chosen. */
export function withApps (page: Page, apps: readonly App[]): Page {
  const next = { ...page, apps }
  return { ...next, chosen: (chosenApp(next) ?? sortedApps(next).at(0))?.key ?? null }
}

/** A key that means nothing changes nothing. */
export function pressKey (page: Page, key: string): Page {
  return Object.hasOwn(KEYS, key) ? KEYS[key](page) : page
}

export function chosenApp ({ apps, chosen }: Page): App | null {
  return apps.find(({ key }) => key === chosen) ?? null
}

function sortedApps ({ apps, order }: Page): App[] {
  const rank = ORDERS[order]
  return [...apps].sort((one, other) => rank(one) - rank(other) || byName(one, other))
}

function choose (page: Page, by: number): Page {
  const apps = sortedApps(page)
  const index = apps.findIndex(({ key }) => key === page.chosen) + by
  return { ...page, chosen: apps[Math.min(apps.length - 1, Math.max(0, index))]?.key ?? null }
}

function after (names: string[], name: string) {
  return names[(names.indexOf(name) + 1) % names.length]
}

/** @returns in a few words */
function healthOf ({ state, reason, health }: App): { tone: string, text: string } {
  const text = reason ? `${state}: ${reason}` : state
  if (state === 'failed') return { tone: 'bad', text }
  if (state === 'stopped') return { tone: 'idle', text }
  return health && state !== 'stopping' ? health : { tone: 'info', text }
}

/** `now`: ms since the epoch */
export function drawTop (page: Page, { rows: height, columns }: Size, now: number): Row[] {
  const room = Math.max(0, height - 1)
  const top = appRows(page, columns, Math.floor(room * SHARE_OF_APPS))
  const rows = [...top, ...detailRows(page, columns, room - top.length, now)].slice(0, room)
  while (rows.length < room) rows.push({ text: '' })
  return [...rows,
    page.problem === null
      ? { text: `q quit, up/down choose, o order (${page.order})`, style: 'dim' }
      : { text: page.problem, style: 'red' }]
}

/** `height`: with the heading */
function appRows (page: Page, columns: number, height: number): Row[] {
  const apps = sortedApps(page)
  if (apps.length === 0) return [{ text: 'no app of this user runs', style: 'dim' }]
  const shown = Object.keys(COLUMNS)
  const [head, ...lines] = columnsTable(COLUMNS, apps, null, { shown, firstToGo: FIRST_TO_GO, last: 'HEALTH',
    width: columns - WORDS_WIDTH }).split('\n')
  const chosen = apps.findIndex(({ key }) => key === page.chosen)
  // The chosen one stays in sight, as far up as it can.
  const count = Math.max(1, height - 1)
  const first = Math.max(0, Math.min(apps.length - count, chosen - Math.floor(count / 2)))
  return [{ text: `  ${head}`, style: 'bold' as const },
    ...lines.map((line, index) => ({ text: `${index === chosen ? '>' : ' '} ${line}`,
      style: index === chosen ? 'inverse' as const : STYLES[healthOf(apps[index]).tone] })
    ).slice(first, first + count)]
}

/** What is to be said of the chosen app, its workers, and its last output. */
function detailRows (page: Page, columns: number, height: number, now: number): Row[] {
  const app = chosenApp(page)
  if (app === null) return []
  const detail = page.detail?.key === app.key && isOpen(app) ? page.detail : null
  const { status, lines = [] } = detail ?? {}
  const facts = [app.name, status ? healthText(status.health) : healthOf(app).text, app.health?.hint]
  const about: Row[] = [{ text: '' }, { text: facts.filter(Boolean).join('  '), style: 'bold' },
    ...status?.rollout ? [{ text: rolloutText(status.rollout) }] : [],
    ...status ? workerRows(status, columns, Math.floor(height * SHARE_OF_WORKERS), now) : [], { text: '' }]
  const room = Math.max(0, height - about.length)
  return [...about,
    ...lines.slice(Math.max(0, lines.length - room)).map((entry) => ({ text: placedLine(entry),
      ...entry.stream === 'stderr' && { style: 'yellow' as const } })
    )]
}

/** `height`: with the heading */
function workerRows ({ workers }: Status, columns: number, height: number, now: number): Row[] {
  const [head, ...lines] = workersText({ workers }, now, WORKER_COLUMNS, { firstToGo: FIRST_TO_GO, last: 'STATE',
    width: columns - WORDS_WIDTH }).split('\n')
  const count = lines.length < height ? lines.length : Math.max(0, height - 2)
  const hidden = lines.length - count
  return [{ text: head, style: 'bold' }, ...lines.slice(0, count).map((text) => ({ text })),
    ...hidden > 0 ? [{ text: `and ${hidden} more`, style: 'dim' as const }] : []]
}
