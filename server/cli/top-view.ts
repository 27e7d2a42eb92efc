import { formatBytes, formatDuration, formatLatency, formatPercent, formatRate } from '../../public/format.ts'
import { areRequestsCounted } from '../figures.ts'
import { countLongLived } from '../held-words.ts'
import { cellsOf, clipText, fitText, isPlain, widthOf } from './cells.ts'
import { isOpen } from './host.ts'
import { rolloutText } from './output.ts'
import { chosenApp, healthOf, visibleApps, visibleLines, type Action, type App, type State } from './top-model.ts'
import type { Region, Row, Style } from './screen.ts'
import type { Worker } from '../api/cluster.ts'

/** Draws what `clusterdeck top` shows: apps above, the workers and the output of the chosen one below. */

type Column<T> = {
  head: string,
  width: number,
  cellOf: (item: T) => string | number | null | undefined,
  /** it holds numbers */
  isRight?: true,
  styleOf?: (item: T) => Style
}

/** From here on there is room for two blanks between columns, and for columns that say more. */
const WIDE_COLUMNS = 110
/** Which part of the rows the apps may have at most, and the workers of what is left. */
const SHARE_OF_APPS = 0.58
const SHARE_OF_WORKERS = 0.4
const MAX_NAME_WIDTH = 24
const MAX_REASONS = 2

const STYLES: Readonly<Record<string, Style>> = Object.freeze({ bad: 'red', warn: 'yellow', drain: 'yellow',
  info: 'cyan', ok: 'green', idle: 'dim' })

/** what it means, after the name of the app */
const QUESTIONS: Readonly<Record<Action, string>> = Object.freeze({
  restart: ': restart all workers, each new one before its old one?',
  deploy: ': deploy the code on disk?',
  stop: ': let it finish its requests, and stop it?',
  start: ': start it?'
})

const HINTS = ['q quit', '? help', 'up/down choose', 'r restart', 'd deploy', 's stop/start', '/ filter',
  'f filter log', 'pgup scroll', 'w workers', 'o order']

const HELP = [['up, down, k, j', 'choose an app; home, end, g and G the first and the last one'], ['r',
  'restart all workers of the app'], ['d', 'deploy the code that is on disk'], ['s',
  'stop the app, or start it if it is stopped'], ['', 'each of these asks before'], ['/',
  'show only apps with some text in their name or health'], ['f', 'show only lines of output with some text'], ['esc',
  'show all apps and lines again'], ['pgup, pgdn, b, space', 'scroll in the output; e goes on with new lines'], [
  'left, right',
  'show the rest of long lines'
], ['w, enter', 'show or hide the workers'], ['o', 'sort apps by health, name, CPU, memory or requests'], [
  'ctrl-l, ctrl-z',
  'draw all anew; suspend'
], ['q, ctrl-c', 'quit; the apps run on'], ['', ''], ['READY', 'workers that are ready, of those that are wanted'], [
  'kept, 120',
  'an old worker, with the connections and transfers that it is kept for'
], ['RST, RESTARTS', 'how often workers were restarted after one had died']]

/** `now`: ms since the epoch. Returns `region`: the lines of output. */
export function drawTop (state: State, now: number): { rows: Row[], region?: Region } {
  const { rows: height, columns } = state.size
  if (state.isHelp) return { rows: helpRows(state) }
  const apps = visibleApps(state)
  const room = Math.max(0, height - 3)
  const tableHeight = Math.min(Math.max(1, apps.length), Math.max(1, Math.floor(room * SHARE_OF_APPS)))
  const above = [titleRow(state), ...appRows(state, apps, tableHeight)]
  const below = detailRows(state, now, room - tableHeight)
  const top = above.length + below.length
  const logHeight = Math.max(0, height - 1 - top)
  const rows = [...above, ...below, ...logRows(state, logHeight)].slice(0, height - 1)
  while (rows.length < height - 1) rows.push([])
  return { rows: [...rows, footRow(state)].map((row) => clipRow(row, columns)),
    ...(logHeight > 0 && { region: { top, bottom: height - 2 } }) }
}

function titleRow ({ apps, size }: State): Row {
  const total = (valueOf: (app: App) => number | null) => apps.reduce((sum, app) => sum + (valueOf(app) ?? 0), 0)
  const states = [...new Set(apps.map(({ state }) => state))].map((state) =>
    `${apps.filter((app) => app.state === state).length} ${state}`
  )
  const left = `${size.columns < WIDE_COLUMNS ? '' : 'clusterdeck top  '}${
    apps.length === 1 ? '1 app' : `${apps.length} apps`
  }${states.length > 0 ? `: ${states.join(', ')}` : ''}`
  const right = `${formatPercent(total(({ cpu }) => cpu))} CPU  ${
    formatBytes(total(({ memoryBytes }) => memoryBytes))
  }  ${formatRate(total(({ requestsPerSecond }) => requestsPerSecond))} req/s`
  const room = size.columns - left.length - 2
  return [{ text: room < right.length ? left : `${left}  ${right.padStart(room)}`, style: 'bold' }]
}

/** `height`: of the rows below the heading */
function appRows (state: State, apps: App[], height: number): Row[] {
  const isWide = state.size.columns >= WIDE_COLUMNS
  const gap = isWide ? 2 : 1
  const columns = appColumns(state, isWide)
  const chosen = Math.max(0, apps.findIndex(({ key }) => key === state.chosen))
  // The chosen one stays in sight, as far up as it can.
  const first = Math.max(0, Math.min(apps.length - height, chosen - Math.floor(height / 2)))
  const rows = apps.slice(first, first + height).map((app) => {
    const isChosen = app.key === state.chosen
    const style = isChosen ? ('inverse' as const) : undefined
    const spans = [{ text: isChosen ? '>' : ' ', style }, ...tableRow(columns, app, gap)]
    const { tone, text } = healthOf(app)
    const problem = state.problems[app.source]
    spans.push({ text: ' '.repeat(gap) + (problem === undefined ? text : 'no answer'),
      style: problem === undefined ? STYLES[tone] : 'red' })
    return isChosen ? [{ text: fitText(spans.map((span) => span.text).join(''), state.size.columns), style }] : spans
  })
  const head = [{ text: ` ${headOf(columns, gap)}${' '.repeat(gap)}${headIn('HEALTH', state.order === 'health')}`,
    style: 'bold' as const }]
  const hidden = apps.length - rows.length
  if (hidden > 0)
    head.push({ text: `  (${first + 1} to ${first + rows.length} of ${apps.length})`, style: 'bold' as const })
  return [head, ...rows.length > 0 ? rows : [[{ text: ` ${whyNone(state)}`, style: 'dim' as const }]]]
}

function whyNone ({ apps, filters }: State) {
  return apps.length > 0
    ? `no app matches ${JSON.stringify(filters.apps)}: esc shows all`
    : 'no app: "clusterdeck start -d app.js" starts one'
}

/** `state`: all apps, so that the columns stay where they are */
function appColumns ({ apps, order }: Pick<State, 'apps' | 'order'>, isWide: boolean): Column<App>[] {
  const nameWidth = Math.min(MAX_NAME_WIDTH, Math.max(8, ...apps.map(({ name }) => widthOf(name))))
  return [{ head: headIn('APP', order === 'name'), width: nameWidth, cellOf: ({ name }) => name }, {
    head: isWide ? 'WORKERS' : 'READY',
    width: isWide ? 7 : 5,
    isRight: true,
    cellOf: ({ workers }) => workers && `${workers.ready}/${workers.desired}`
  }, { head: headIn('CPU', order === 'cpu'), width: 6, isRight: true,
    cellOf: ({ cpu }) => cpu === null ? null : formatPercent(cpu) }, { head: headIn('MEMORY', order === 'memory'),
    width: 7, isRight: true, cellOf: ({ memoryBytes }) => memoryBytes === null ? null : formatBytes(memoryBytes) }, {
    head: headIn('REQ/S', order === 'requests'),
    width: 6,
    isRight: true,
    cellOf: ({ requestsPerSecond }) => requestsPerSecond === null ? null : formatRate(requestsPerSecond)
  }, { head: 'P99', width: 7, isRight: true, cellOf: ({ p99Ms }) => p99Ms === null ? null : formatLatency(p99Ms) },
    restartsColumn(isWide)]
}

function restartsColumn (isWide: boolean): Column<{ restarts: number | null }> {
  return { head: isWide ? 'RESTARTS' : 'RST', width: isWide ? 8 : 4, isRight: true, cellOf: ({ restarts }) => restarts }
}

/** `isOrder`: the apps are in its order */
function headIn (head: string, isOrder: boolean) {
  return isOrder ? `${head}*` : head
}

/** What is to be said of the chosen app, and its workers. */
function detailRows (state: State, now: number, room: number): Row[] {
  const app = chosenApp(state)
  if (app === null || room < 1) return []
  const bar = barRow(factsOf(state, app).join('  '), state.size.columns)
  const reasons = reasonsOf(state, app).slice(0, Math.min(MAX_REASONS, room - 2)).map((
    text
  ) => [{ text: `  ${text}`, style: 'yellow' as const }])
  const workers = workerRows(state, app, now, Math.floor((room - reasons.length) * SHARE_OF_WORKERS))
  const rows = [bar, ...reasons, ...workers]
  return rows.length + 1 < room ? [...rows, logBar(state, app)] : rows.slice(0, room)
}

function factsOf ({ status }: State, app: App): string[] {
  const { name, release, addresses, health, state } = app
  return [name, health === null || state === 'stopping' ? state : health.text, ...(release === null ? [] : [release]),
    ...(status?.rollout ? [rolloutText(status.rollout)] : []), ...addresses.slice(0, 2)]
}

/** @returns why it is sick */
function reasonsOf ({ status }: State, { reason, health }: App): string[] {
  return [...(reason === null ? [] : [reason]), ...(status?.health?.reasons ?? []).map(({ text }) => text),
    ...(health?.hint && health.tone !== 'ok' ? [health.hint] : [])]
}

/** `height`: with the heading */
function workerRows ({ status, hasWorkers, size }: State, app: App, now: number, height: number): Row[] {
  const workers = status?.workers ?? []
  if (!hasWorkers || height < 2) return []
  // Until they are known, their place is kept, so that nothing jumps.
  if (status === null && isOpen(app))
    return Array.from({ length: Math.min(height, (app.workers?.desired ?? 0) + 1) }, () => [])
  if (workers.length === 0 || !isOpen(app)) return []
  const gap = size.columns >= WIDE_COLUMNS ? 2 : 1
  const columns = workerColumns({ now, isWide: size.columns >= WIDE_COLUMNS, isCounted: areRequestsCounted(workers) })
  const shown = workers.length < height ? workers : workers.slice(0, height - 2)
  const hidden = workers.length - shown.length
  return [[{ text: ` ${headOf(columns, gap)}`, style: 'bold' }],
    ...shown.map((worker) => [{ text: ' ' }, ...tableRow(columns, worker, gap)]),
    ...(hidden > 0 ? [[{ text: `  and ${hidden} more`, style: 'dim' as const }]] : [])]
}

/** `isCounted`: whether their requests are counted */
function workerColumns (
  { now, isWide, isCounted }: { now: number, isWide: boolean, isCounted: boolean }
): Column<Worker>[] {
  return [{ head: 'SLOT', width: 4, isRight: true, cellOf: ({ slot }) => slot }, { head: 'WORKER', width: 6,
    isRight: true, cellOf: ({ id }) => id }, { head: 'PID', width: 7, isRight: true, cellOf: ({ pid }) => pid }, {
    head: 'STATE',
    width: 12,
    cellOf: stateIn,
    styleOf: styleOfWorker
  }, { head: 'CPU', width: 6, isRight: true, cellOf: ({ vitals }) => vitals && formatPercent(vitals.cpuPercent) }, {
    head: 'MEMORY',
    width: 7,
    isRight: true,
    cellOf: ({ vitals }) => vitals && formatBytes(vitals.rssBytes)
  },
    ...(isCounted
      ? ([{ head: 'REQ/S', width: 6, isRight: true, cellOf: ({ vitals }) =>
        vitals && formatRate(vitals.requestsPerSecond) }, { head: 'P99', width: 7, isRight: true,
        cellOf: ({ vitals }) => vitals && formatLatency(vitals.latencyP99Ms) }] as Column<Worker>[])
      : ([{ head: 'CONNS', width: 6, isRight: true,
        cellOf: ({ vitals }) => vitals && vitals.openConnections }] as Column<Worker>[])), restartsColumn(isWide),
    ...(isWide
      ? ([{ head: 'UPTIME', width: 10, isRight: true, cellOf: ({ pid, startedAt }) =>
        pid === null || startedAt === null ? null : formatDuration(now - Date.parse(startedAt)) }, { head: 'RELEASE',
        width: 8, cellOf: ({ release, drifted }) =>
          drifted ? `${release} +` : release }] as Column<Worker>[])
      : [])]
}

/** @returns of an old worker how many connections and transfers it is kept for */
function stateIn ({ state, crashLooping, keptUntil, holds }: Worker): string {
  if (keptUntil) return `kept, ${countLongLived(holds)}`
  return crashLooping ? 'crash-loop' : state
}

function styleOfWorker ({ state, crashLooping }: Worker): Style {
  if (crashLooping || state === 'unresponsive' || state === 'held') return 'red'
  if (state === 'ready') return 'green'
  return state === 'finished' ? '' : 'yellow'
}

function logBar ({ size, filters, scroll, shift }: State, { name }: App): Row {
  const facts = [`output of ${name}`, ...(filters.logs === '' ? [] : [`only with ${JSON.stringify(filters.logs)}`]),
    ...(scroll === 0 ? [] : [`${scroll} lines below: e goes on with new ones`]),
    ...(shift === 0 ? [] : [`from column ${shift + 1}`])]
  return barRow(facts.join('  '), size.columns)
}

function barRow (text: string, columns: number): Row {
  const shown = `-- ${clipText(text, Math.max(0, columns - 6))} `
  return [{ text: shown, style: 'bold' }, { text: '-'.repeat(Math.max(0, columns - widthOf(shown))), style: 'dim' }]
}

function logRows (state: State, height: number): Row[] {
  if (height < 1) return []
  const app = chosenApp(state)
  const lines = visibleLines(state)
  const end = lines.length - state.scroll
  const shown = lines.slice(Math.max(0, end - height), end)
  if (shown.length === 0 && app) return [[{ text: ` ${whySilent(state, app)}`, style: 'dim' }]]
  return shown.map(({ slot, stream, text }) => {
    const [from, to] = [state.shift, state.shift + state.size.columns]
    const line = isPlain(text) ? text.slice(from, to) : cellsOf(text).slice(from, to).join('')
    return [{ text: `${Number(slot)} ${stream === 'stderr' ? 'stderr' : 'stdout'} | `, style: 'dim' as const }, {
      text: line,
      style: stream === 'stderr' ? ('yellow' as const) : undefined
    }]
  })
}

function whySilent ({ filters, lines }: State, app: App) {
  if (filters.logs !== '' && lines.length > 0) return 'no line matches: esc shows all'
  return isOpen(app) ? 'no output yet' : `${app.name} is ${app.state}`
}

function footRow ({ prompt, filters, message, problems, size }: State): Row {
  if (prompt?.kind === 'confirm')
    return [{ text: `${prompt.app.name}${QUESTIONS[prompt.action]} y: yes, any other key: no`, style: 'inverse' }]
  if (prompt?.kind === 'filter') {
    const what = prompt.of === 'apps' ? 'only apps with' : 'only lines with'
    return [{ text: `${what}: ${filters[prompt.of]}`, style: 'bold' }, { text: ' ', style: 'inverse' }, {
      text: '  enter: keep, esc: as before',
      style: 'dim'
    }]
  }
  const [problem] = Object.values(problems)
  if (problem !== undefined) return [{ text: problem, style: 'red' }]
  if (message) return [{ text: message.text, style: STYLES[message.tone] }]
  const hints = HINTS.filter((_, index) => HINTS.slice(0, index + 1).join('  ').length <= size.columns)
  return [{ text: hints.join('  '), style: 'dim' }]
}

function helpRows ({ size }: State): Row[] {
  const rows: Row[] = [[{ text: 'clusterdeck top', style: 'bold' }], [],
    ...HELP.map(([keys, about]) => [{ text: `  ${keys.padEnd(22)}`, style: 'bold' as const }, { text: about }])]
  const shown = rows.slice(0, size.rows - 1)
  while (shown.length < size.rows - 1) shown.push([])
  return [...shown, [{ text: 'any key: back', style: 'dim' as const }]].map((row) => clipRow(row, size.columns))
}

function headOf<T> (columns: Column<T>[], gap: number) {
  return columns.map(({ head, width, isRight }) => fitText(head, width, { isRight })).join(' '.repeat(gap))
}

function tableRow<T> (columns: Column<T>[], item: T, gap: number): Row {
  return columns.map(({ cellOf, styleOf, width, isRight }, index) => {
    const value = cellOf(item)
    const text = value === null || value === undefined || value === '' || value === '–' ? '-' : String(value)
    return { text: `${index === 0 ? '' : ' '.repeat(gap)}${fitText(text, width, { isRight })}`, style: styleOf?.(item) }
  })
}

/** @returns with a mark at its end where something is missing */
function clipRow (row: Row, columns: number): Row {
  let room = columns
  return row.flatMap(({ text, style }, index) => {
    if (room <= 0) return []
    // A part that just fits is cut where others follow.
    const isLast = row.slice(index + 1).every((span) => widthOf(span.text) === 0)
    const width = widthOf(text)
    const shown = width < room || isLast ? clipText(text, room) : clipText(`${text}  `, room)
    room -= widthOf(shown)
    return [{ text: shown, style }]
  })
}
