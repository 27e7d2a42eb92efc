import { areRequestsCounted } from '../words/figures.ts'
import { heldWords } from '../words/held.ts'
import { waitingText } from '../words/health.ts'
import { oneLine } from '../system/one-line.ts'
import { formatBytes, formatDispatch, formatDuration, formatExactDuration, formatLatency, formatLimits, formatNode,
  formatPercent, formatRate, TICKS } from '../../public/format.ts'
import type { Status, Worker } from '../api/cluster.ts'
import type { Rollout } from '../rollouts/api.ts'
import type { Event } from '../events/api.ts'

/** What the commands print for people. Scripts read `--json`. */
type Cell = string | number | null | undefined
type Field<Item> = { [Name in keyof Item]: Item[Name] extends Cell ? Name : never }[keyof Item]
/** a field, or what is made of it; `place`: what that is told besides, such as the time: ms since the epoch */
type Shown<Item, Place> = Field<Item> | ((item: Item, place: Place) => Cell)
/** of one kind of record, by heading */
export type Columns<Item, Place = number> = Readonly<
  Record<string, Shown<Item, Place> | [isNumber: boolean, Shown<Item, Place>]>
>

/** Only so many texts are shown that programs say of themselves: each could say something else, and at length. */
const MAX_SAYINGS = 5

export function jsonText (value: unknown) {
  return JSON.stringify(value, null, 2)
}

/**
 * Makes columns as wide as their widest cell, two spaces apart; the last one is left as it is.
 * @param options `right`: columns that hold numbers
 */
export function formatTable (head: readonly string[], rows: Cell[][], { right = [] }: { right?: number[] } = {}) {
  const lines = [head, ...rows].map((row) =>
    row.map((cell) => cell === null || cell === undefined || cell === '' ? '-' : oneLine(String(cell)))
  )
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) =>
    line.map((cell, column) => {
      if (right.includes(column)) return cell.padStart(widths[column])
      return column === line.length - 1 ? cell : cell.padEnd(widths[column])
    }).join('  ')
  ).join('\n')
}

/** Makes a table of some of the columns of a record, or of all. */
export function tableOf<Item> (items: readonly Item[], shown: readonly string[], columns: Columns<Item>,
  now: number = Date.now())
{
  return columnsTable(columns, items, now, { shown })
}

/**
 * Where a terminal is narrow, leaves out columns until all lines fit.
 * @param options `shown`: headings, default: all; `firstToGo`: those that may be left out, the first ones first; `last`:
 * a column that may be too wide
 */
export function columnsTable<Item, Place> (columns: Columns<Item, Place>, items: readonly Item[], place: Place,
  { shown = Object.keys(columns), firstToGo = [], last, width = Infinity }: { shown?: readonly string[],
    firstToGo?: readonly string[], last?: string, width?: number } = {}): string
{
  let kept = shown
  const isTooWide = () => tableOf(kept.filter((name) => name !== last)).split('\n').some(({ length }) => length > width)
  for (const name of firstToGo) if (isTooWide()) kept = kept.filter((each) => each !== name)
  return tableOf(kept)

  function tableOf (names: readonly string[]) {
    const all = names.map((name) => toPair(columns[name]))
    return formatTable(names, items.map((item) => all.map(([, show]) => cellOf(show, item, place))), {
      right: [...names.keys()].filter((index) => all[index][0])
    })
  }
}

function toPair<Item, Place> (column: Columns<Item, Place>[string]): readonly [isNumber: boolean, Shown<Item, Place>] {
  return Array.isArray(column) ? column : [false, column]
}

function cellOf<Item, Place> (show: Shown<Item, Place>, item: Item, place: Place): Cell {
  return typeof show === 'function' ? show(item, place) : item[show] as Cell
}

/** The columns of the workers. */
const WORKER_COLUMNS: Columns<Worker> = { SLOT: [true, 'slot'], WORKER: [true, 'id'], PID: [true, 'pid'],
  PORT: [true, 'port'], STATE: stateText, RELEASE: ({ release, drifted }) => drifted ? `${release} + changes` : release,
  UPTIME: ({ pid, startedAt }, now) => pid === null ? null : ageOf(startedAt, now), RESTARTS: [true, 'restarts'],
  MEMORY: [true, ({ vitals }) => vitals && formatBytes(vitals.rssBytes)],
  CPU: [true, ({ vitals }) => vitals && formatPercent(vitals.cpuPercent)],
  'REQ/S': [true, ({ vitals }) => vitals && formatRate(vitals.requestsPerSecond)],
  P99: [true, ({ vitals }) => vitals && formatLatency(vitals.latencyP99Ms)],
  CONNS: [true, ({ vitals }) => vitals && vitals.openConnections],
  LOOP: [true, ({ vitals }) => vitals && formatPercent(percentOf(vitals.eventLoopUtilization))] }
const STATUS_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'RESTARTS', 'MEMORY', 'CPU']
const WATCHED_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'MEMORY', 'CPU', 'CONNS',
  'REQ/S', 'P99', 'LOOP']
/** What only a Node program counts, and what is shown of others instead. */
const NODE_COLUMNS = ['REQ/S', 'P99', 'LOOP']
const OTHER_COLUMNS = ['CONNS']

/** `now`: ms since the epoch */
export function statusText (status: Status, now: number) {
  return `${factsText(status, now)}\n\n${workersText(status, now, STATUS_COLUMNS)}`
}

/** The same for `--watch`, with the columns that change from second to second. */
export function watchedText (status: Status, now: number) {
  return `${factsText(status, now)}\n\n${workersText(status, now, WATCHED_COLUMNS)}`
}

/** The same on one line. */
export function statusLine ({ state, release, readyWorkers, desiredWorkers, workers, rollout }: Status) {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  const latencies = vitals.flatMap(({ latencyP99Ms }) => latencyP99Ms ?? [])
  return oneLine(
    [state, `release ${release?.id ?? '-'}`, `${readyWorkers} of ${desiredWorkers} ready`,
      ...countsOf(workers.map((worker) => worker.state).filter((each) => each !== 'ready')),
      ...(areRequestsCounted(workers)
        ? [`${formatRate(sumOf(vitals.map(({ requestsPerSecond }) => requestsPerSecond ?? 0)))} requests/s`]
        : []), ...(latencies.length > 0 ? [`slowest p99 ${formatLatency(Math.max(...latencies))}`] : []),
      formatBytes(sumOf(vitals.map(({ rssBytes }) => rssBytes ?? 0))), ...(rollout ? [rolloutText(rollout)] : [])].join(
        ', '
      )
  )
}

function sumOf (values: number[]) {
  return values.reduce((total, value) => total + value, 0)
}

/** @returns `2 draining` */
function countsOf (words: string[]): string[] {
  return [...new Set(words)].map((word) => `${words.filter((each) => each === word).length} ${word}`)
}

function factsText (status: Status, now: number) {
  const { master, app, health, notices = [], workers } = status
  const ready = `${status.readyWorkers} of ${status.desiredWorkers} ready`
  return linesOf([
    ...notices.map((
      { id, at, count, message, endedAt }
    ) => ['notice',
      `${id}: ${message} (${at}${count > 1 ? `, ${count} times` : ''}${endedAt ? `, over since ${endedAt}` : ''})`]
    ),
    ['health', health && healthText(health)],
    ['state', status.state],
    ['master',
      [`pid ${master.pid}`, `up ${ageOf(master.startedAt, now)}`,
        `${formatBytes(master.rssBytes)}${master.isShared ? ' for all apps of the host' : ''}`,
        `clusterdeck ${master.version}`, `node ${master.nodeVersion}`].join(', ')],
    ['app', app.program ?? app.entry],
    ...app.addresses.map((address) => ['', address]),
    ['release', status.release?.id ?? '-'],
    ['node', status.release?.node && formatNode(status.release.node)],
    ['workers', status.finishedWorkers > 0 ? `${ready}, ${status.finishedWorkers} finished` : ready],
    ...factsOfSlots('says', workers, ({ statusText }) => statusText ? [statusText] : []),
    ['restart', status.nextRestartAt && `${inText(status.nextRestartAt, now)} (restart.cron)`],
    ['standby', status.standby?.wanted > 0 && standbyText(status.standby)],
    ['dispatch', formatDispatch(status)],
    ['sockets', app.ownSockets && `each worker has its own, so only one can serve: ${app.ownSockets}`],
    ...factsOfSlots('sockets', workers, ({ socketNotes = [] }) => socketNotes),
    ['limits', status.limits && formatLimits(status.limits)],
    ['rollout', status.rollout && rolloutText(status.rollout)],
    ['history', status.history?.problem && `cannot be written: ${status.history.problem}`]
  ])
}

/** `facts`: name and value, where there is one; `width`: of the names */
export function linesOf (facts: readonly (string | number | false | null | undefined)[][], width: number = 9): string {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
  return shown.map(([name, value]) => `${String(name).padEnd(width)}${oneLine(String(value))}`).join('\n')
}

/** Each text once, with the slots of which it is. */
function factsOfSlots (name: string, workers: Worker[], textsIn: (worker: Worker) => string[]): string[][] {
  const texts = [...new Set(workers.flatMap(textsIn))].slice(0, MAX_SAYINGS)
  return texts.map((text) => {
    const slots = workers.filter((worker) => textsIn(worker).includes(text)).map(({ slot }) => slot)
    return [name, `${text} (${slots.length === 1 ? 'slot' : 'slots'} ${slots.join(', ')})`]
  })
}

function stateText ({ state, finished, crashLooping, holds, keptUntil }: Worker, now: number) {
  const kept = keptUntil && `(${heldWords(holds)}, ${keptText(Date.parse(keptUntil) - now)})`
  return [state, finished && `(${finishedText(finished)})`, crashLooping && '(crash-looping)', kept].filter(Boolean)
    .join(' ')
}

function keptText (leftMs: number) {
  return leftMs > 0 ? `closed in ${formatDuration(leftMs)}` : 'closing'
}

function finishedText ({ cause, code }: NonNullable<Worker['finished']>) {
  return [cause !== 'finished' && cause, code !== null && `code ${code}`].filter(Boolean).join(', ')
}

function standbyText ({ ready, wanted, problem, workers }: Status['standby']) {
  const rows = workers.map(({ id, pid, state, rssBytes }) => {
    const facts = [`pid ${pid ?? '-'}`, state !== 'standby' && state, rssBytes !== null && formatBytes(rssBytes)]
    return `worker ${id} (${facts.filter(Boolean).join(', ')})`
  })
  return [`${ready} of ${wanted} ready`, rows.join(', '), problem].filter(Boolean).join(': ')
}

export function healthText ({ text, reasons }: Status['health']) {
  return [text, ...reasons.map((reason) => reason.text)].join(': ')
}

/** `all`: the columns; PORT is left out where no slot has one */
export function workersText ({ workers }: Pick<Status, 'workers'>, now: number, all: readonly string[],
  narrow?: { firstToGo: readonly string[], last: string, width: number }): string
{
  const hidden = areRequestsCounted(workers) ? OTHER_COLUMNS : NODE_COLUMNS
  const shown = all.filter((column) =>
    !hidden.includes(column) && (column !== 'PORT' || workers.some(({ port }) => port))
  )
  return columnsTable(WORKER_COLUMNS, workers, now, { shown, ...narrow })
}

function ageOf (since: string | null, now: number) {
  return since === null ? null : formatDuration(now - Date.parse(since))
}

/** `iso`: a time to come. Returns `in 2 h 05 min`. */
export function inText (iso: string, now: number = Date.now()) {
  return TICKS.in(now - Date.parse(iso))
}

function percentOf (share: number | null | undefined) {
  return typeof share === 'number' ? share * 100 : null
}

export function rolloutText ({ id, kind, state, progress, hook, startedAt, finishedAt, waitingFor }: Rollout) {
  const waiting = waitingText({ waitingFor })
  if (waiting) return oneLine(`rollout ${id} (${kind}) ${state === 'paused' ? 'paused, and ' : ''}${waiting}`)
  if (hook && isHookRunning({ state, hook })) return oneLine(`rollout ${id} (${kind}) running ${hook.name}`)
  const took = startedAt && finishedAt
    ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}`
    : ''
  return oneLine(`rollout ${id} (${kind}) ${state}${took}: ${progress.replaced} of ${progress.total} workers replaced`)
}

export function isHookRunning ({ state, hook }: Pick<Rollout, 'state' | 'hook'>): boolean {
  return state === 'preparing' && hook?.state === 'running'
}

type ToldEvent = Event & { app?: string | null, member?: string }

/** The columns of events, by heading. */
const EVENT_COLUMNS: Columns<ToldEvent> = { APP: 'app', ID: [true, 'id'], TIME: 'at', MEMBER: 'member', TYPE: 'type',
  SLOT: [true, 'slot'], WORKER: [true, 'worker'], RELEASE: 'release', WHAT: whatHappened }

/** `events`: newest first; those of a fleet have no id of their own, and each time is by the clock of its host */
export function eventsText (events: ToldEvent[]) {
  const isOf = (of: 'app' | 'member') => events.some((event) => event[of] !== undefined)
  const hidden = [...(isOf('app') ? [] : ['APP']), isOf('member') ? 'ID' : 'MEMBER']
  return tableOf(events, Object.keys(EVENT_COLUMNS).filter((column) => !hidden.includes(column)), EVENT_COLUMNS)
}

function whatHappened ({ cause, code, signal, message, actor }: Event) {
  const facts = [cause, signal, code === null ? null : `code ${code}`, actor && `by ${actor}`].filter(Boolean).join(
    ', '
  )
  if (message && facts) return `${message} (${facts})`
  return message ?? facts
}
