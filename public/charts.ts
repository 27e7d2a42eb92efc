import { BASE } from './base.ts'
import { createChart, type Line } from './chart.ts'
import { momentText, spanText } from './chart-clock.ts'
import { createMarks } from './chart-marks.ts'
import { fixedRange, isLive, liveRange, readRange, spanParams, writeRange, type ChosenRange } from './chart-range.ts'
import { emptyText, liveText, pointText } from './chart-state.ts'
import { byId, findElement, setText } from './elements.ts'
import { formatBytes, formatExactDuration, formatLatency, formatPercent, formatRate } from './format.ts'
import { clustersOf, clusterText, DEPLOY_TYPES, exitTypes, type Cluster, type Mark } from './mark-clusters.ts'
import { drawSparks } from './sparks.ts'
import { serverTime } from './ticks.ts'
import { timeZone } from './times.ts'
import { createFeed, type FeedState } from './vitals-feed.ts'
import type { Range, Vitals } from './vitals-series.ts'

/** Charts of the vitals of the cluster or of one slot, with marks for deploys and crashes. */

type Chart = { id: string, format: (value: number | null | undefined) => string, lines: Line[], increments?: number[] }
type DrawnChart = Chart & { figure: HTMLElement, place: HTMLElement, plot: ReturnType<typeof createChart> }

const WHOLE_MEGABYTES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024, 2048, 5120, 10_240, 51_200, 102_400].map((
  megabytes
) => megabytes * 1024 ** 2)
/** There is no half of a thread. */
const WHOLE_NUMBERS = Array.from({ length: 6 }, (_, zeros) => [1, 2, 5].map((digit) => digit * 10 ** zeros)).flat()
/** Marks that are closer than this become one with a count. */
const CLUSTER_PX = 26
/** How far a key moves, as a part of the range. */
const STRIDES: Readonly<Record<string, number>> = Object.freeze({ ArrowLeft: -0.01, ArrowRight: 0.01, PageDown: -0.1,
  PageUp: 0.1, Home: -1, End: 1 })
const ZOOMS: Readonly<Record<string, number>> = Object.freeze({ '+': 0.5, '=': 0.5, '-': 2 })

/** Those that the page has a place for. */
const CHARTS: readonly Chart[] =
  ([{ id: 'requests', format: (value) => value === null || value === undefined ? '–' : `${formatRate(value)}/s`,
    lines: [{ column: 'requestsPerSecond', label: 'all', tone: '--info', isFilled: true }, {
      column: 'requests5xxPerSecond',
      label: '5xx',
      tone: '--bad',
      isRare: true
    }] }, { id: 'latency', format: formatLatency,
    lines: [{ column: 'latencyP99Ms', label: 'p99', tone: '--drain' }, { column: 'latencyP50Ms', label: 'p50',
      tone: '--info' }] }, { id: 'cpu', format: formatPercent,
    lines: [{ column: 'cpuPercent', label: '', tone: '--info', isFilled: true }] }, { id: 'memory', format: formatBytes,
    increments: WHOLE_MEGABYTES, lines: [{ column: 'rssBytes', label: '', tone: '--info', isFilled: true }] }, {
    id: 'loop',
    format: formatLatency,
    lines: [{ column: 'loopDelayP99Ms', label: '', tone: '--warn', isFilled: true }]
  },
    ...[['connections', 'openConnections'], ['threads', 'threads'], ['descriptors', 'descriptors']].map((
      [id, column]
    ) => ({ id,
      format: (value: number | null | undefined) =>
        value === null || value === undefined ? '–' : String(Math.round(value)), increments: WHOLE_NUMBERS,
      lines: [{ column, label: '', tone: '--info', isFilled: true }] })
    )] as Chart[]).filter(({ id }) => document.getElementById(`chart-${id}`))

const section = byId('charts')
const list = byId('charts-marks')
const choice = findElement('#charts-range', HTMLSelectElement)
const slot = section.dataset.slot === undefined ? null : Number(section.dataset.slot)
const faults = String(section.dataset.faults).split(' ')

let chosen = readRange(new URLSearchParams(location.search), serverTime())
let vitals: Vitals | null = null
let shown: Range = { fromS: 0, toS: 1, stepS: 1 }
let feedState: FeedState = 'loading'
let marks: Mark[] = []
/** The time that was chosen by keys; it stays while new values arrive. */
let moment: number | null = null
let listed = ''

const charts = CHARTS.map((chart) => {
  const figure = byId(`chart-${chart.id}`)
  const place = findElement('.chart-place', HTMLElement, figure)
  const plot = createChart({ place, lines: chart.lines, format: chart.format, increments: chart.increments, timeZone,
    onPoint: (index, second) => readAt(chart, figure, index, second), onSelect: zoomTo, onOpen: openCluster })
  const known = { ...chart, figure, place, plot }
  place.addEventListener('keydown', (event) => onKey(event, known))
  place.addEventListener('focus', () => describeChart(known))
  place.addEventListener('blur', () => movePoint(known, null))
  return known
})
const [reference] = charts
const feed = createFeed({ slot, columns: CHARTS.flatMap(({ lines }) => lines.map(({ column }) => column)),
  room: () => reference.plot.room, onChange: showValues })
const events = createMarks({ slot, news: byId('chart-news'), faults, onChange: setMarks })

followNow()
choice.addEventListener('change', () => showRange(liveRange(choice.value)))
document.addEventListener('clusterdeck:preference', redrawCharts)
new MutationObserver(redrawCharts).observe(document.documentElement, { attributeFilter: ['data-theme'] })
new MutationObserver(showState).observe(document.documentElement, { attributeFilter: ['data-live'] })
new ResizeObserver(feed.refresh).observe(section)
for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)'])
  matchMedia(query).addEventListener('change', redrawCharts)

function showRange (range: ChosenRange) {
  chosen = range
  const params = String(writeRange(new URLSearchParams(location.search), range))
  history.replaceState(history.state, '', `${location.pathname}${params && `?${params}`}${location.hash}`)
  document.dispatchEvent(new Event('clusterdeck:address'))
  followNow()
}

function followNow () {
  moment = null
  list.dataset.state = 'loading'
  feed.show(chosen)
  events.show(chosen)
  choice.value = isLive(chosen) ? chosen.name : 'part'
}

function zoomTo (fromS: number, toS: number) {
  showRange(fixedRange(fromS * 1000, toS * 1000, serverTime()))
}

function showValues (newest: Vitals, range: Range, state: FeedState) {
  vitals = newest
  shown = range
  feedState = state
  showState()
  for (const { plot } of charts) plot.show(newest, range)
  drawSparks(newest, range)
  for (const { plot } of charts) plot.rest()
  if (moment !== null) reference.plot.point(moment)
  updateClusters()
}

/** Says whether the charts are live, and why they are empty if they are. */
function showState () {
  if (!vitals || feedState === 'loading') return
  const { mean, newest, pointS } = vitals
  const isEmpty = CHARTS.every(({ lines: [{ column }] }) => mean[column].every((value) => value === null))
  const situation = { isLive: isLive(chosen), isConnected: document.documentElement.dataset.live !== 'off', isEmpty,
    isSilent: CHARTS.every(({ lines: [{ column }] }) => newest[column] === null), hasFailed: feedState === 'failed',
    untilMs: shown.toS * 1000, nowMs: serverTime(), slot, stepS: shown.stepS }
  const { text, tone } = liveText(situation)
  const why = emptyText(situation)
  section.dataset.state = !isEmpty ? 'shown' : situation.isLive ? 'empty' : 'empty-past'
  byId('charts-state').dataset.tone = tone
  setText(byId('charts-state'), text)
  byId('charts-empty').hidden = why === ''
  setText(byId('charts-empty'), why)
  setText(byId('charts-points'), pointText(lengthOf(pointS)))
}

function setMarks (all: Mark[]) {
  marks = all
  list.dataset.state = 'known'
  updateClusters()
}

function updateClusters () {
  const inside = marks.filter(({ firstS, lastS }) => lastS >= shown.fromS && firstS <= shown.toS)
  const clusters = clustersOf(inside, Math.max(1, Math.round(CLUSTER_PX * reference.plot.secondsPerPx)))
  for (const { plot } of charts) plot.mark(clusters)
  listClusters(clusters.toSorted((a, b) => b.lastS - a.lastS))
}

/** Lists the marks as links, newest first, for people who cannot see or point. */
function listClusters (clusters: Cluster[]) {
  const said = JSON.stringify(clusters.map(clusterUrl))
  if (said === listed) return
  listed = said
  const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute('data-key') : null
  list.replaceChildren(...clusters.map((each) => {
    const link = document.createElement('a')
    link.href = clusterUrl(each)
    link.dataset.key = `${each.lane} ${each.firstS}`
    const when = document.createElement('span')
    when.className = 'fine'
    when.textContent = spanText(each.firstS, each.lastS, viewerTime())
    link.append(when, ` ${clusterText(each)}`)
    const item = document.createElement('li')
    item.className = `tone-${each.tone} is-${each.lane}`
    item.append(link)
    return item
  }))
  const again = focused && list.querySelector(`[data-key="${CSS.escape(focused)}"]`)
  if (again instanceof HTMLElement) again.focus({ preventScroll: true })
}

function redrawCharts () {
  for (const { plot } of charts) plot.redraw()
  listed = ''
  updateClusters()
}

/** The values at the pointer, or the newest. Returns when that is, and what happened then. */
function readAt ({ lines, format }: Chart, figure: HTMLElement, index: number | null, second: number): string {
  for (const { column } of lines) {
    setText(figure.querySelector(`[data-column="${column}"]`), format(valueAt(column, index)))
  }
  if (index === null) return ''
  // The flags of the other charts would cover what is below them.
  const isHere = figure.querySelector('.chart-place:is(:hover, :focus)') !== null
  const more = isHere ? [bandText(lines, format, index), ...reference.plot.at(second).map(clusterText)] : []
  return [momentText(measuredAt(index, second), { stepS: pointS(), ...viewerTime() }), ...more].filter(Boolean).join(
    '\n'
  )
}

/** @returns from the lowest to the highest value of a point, empty if it has only one */
function bandText ([{ column, label }]: readonly Line[], format: Chart['format'], index: number): string {
  const [low, high] = vitals ? [vitals.low[column][index], vitals.high[column][index]] : [null, null]
  if (low === null || high === null || format(low) === format(high)) return ''
  return `${label && label !== 'all' ? `${label} ` : ''}${format(low)} to ${format(high)} in ${lengthOf(pointS())}`
}

/** @returns `5 s`, `2 min` */
function lengthOf (seconds: number): string {
  return formatExactDuration(seconds * 1000).replace('.0', '')
}

function pointS (): number {
  return vitals?.pointS ?? shown.stepS
}

function valueAt (column: string, index: number | null) {
  if (!vitals) return null
  return index === null ? vitals.newest[column] : vitals.mean[column][index]
}

/** The time of the values, or of the pointer if there are none. */
function measuredAt (index: number, second: number) {
  const isKnown = CHARTS.some(({ lines }) => lines.some(({ column }) => valueAt(column, index) !== null))
  return isKnown && vitals ? vitals.time[index] : second
}

function onKey (event: KeyboardEvent, chart: DrawnChart) {
  if (event.ctrlKey || event.altKey || event.metaKey) return
  const { fromS, toS } = shown
  const stepS = pointS()
  const from = moment ?? toS
  if (event.key in STRIDES) {
    const stride = STRIDES[event.key]
    const by = event.shiftKey
      ? Math.sign(stride) * stepS
      : Math.sign(stride) * Math.max(stepS, Math.abs(stride) * (toS - fromS))
    movePoint(chart, Math.min(toS, Math.max(fromS, from + by)))
  } else if (event.key in ZOOMS) {
    const half = (toS - fromS) * ZOOMS[event.key] / 2
    zoomTo(from - half, from + half)
  } else if (event.key === 'Escape' && moment !== null) {
    movePoint(chart, null)
  } else if (event.key === 'Escape' && !isLive(chosen)) {
    showRange(liveRange(''))
  } else if (event.key === 'Enter' && moment !== null && chart.plot.at(moment).length > 0) {
    openCluster(chart.plot.at(moment)[0])
  } else {
    return
  }
  event.preventDefault()
}

function movePoint (chart: DrawnChart, second: number | null) {
  if (second === null && moment === null) return
  moment = second
  chart.plot.point(second)
  describeChart(chart)
}

function describeChart ({ place, figure, plot }: DrawnChart) {
  const values = Array.from(figure.querySelectorAll('.chart-value'),
    (value) => String(value.textContent).trim().replace(/\s+/g, ' '))
  const at = moment === null
    ? ['now']
    : [momentText(moment, { stepS: pointS(), ...viewerTime() }), ...plot.at(moment).map(clusterText)]
  const part = moment === null ? 1 : (moment - shown.fromS) / (shown.toS - shown.fromS)
  place.setAttribute('aria-valuenow', String(Math.round(part * 100)))
  place.setAttribute('aria-valuetext', [...at, ...values].join(', '))
}

function openCluster (cluster: Cluster) {
  location.assign(clusterUrl(cluster))
}

function clusterUrl ({ lane, count, firstS, lastS, lastId }: Cluster): string {
  if (count === 1) return `${BASE}/history/${lastId}`
  const type = (lane === 'exits' ? exitTypes(faults) : DEPLOY_TYPES).join()
  return urlOf('history', { type, ...spanParams({ sinceMs: firstS * 1000, untilMs: lastS * 1000 + 1 }) },
    lane === 'exits')
}

function urlOf (page: string, filters: Record<string, string>, isOfSlot: boolean = true) {
  return `${BASE}/${page}?${new URLSearchParams({ ...filters,
    ...(slot !== null && isOfSlot && { slot: String(slot) }) })}`
}

function viewerTime () {
  return { nowS: serverTime() / 1000, timeZone: timeZone() }
}
