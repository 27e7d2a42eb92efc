import { createChart } from './chart.js'
import { createMarks } from './chart-marks.js'
import { formatBytes, formatLatency, formatPercent, formatRate } from './format.js'
import { createFeed, RANGES } from './vitals-feed.js'

/** The charts of the overview: how the cluster felt, and what happened meanwhile. */

/** @typedef {{ id: string, format: (value: number | null | undefined) => string, lines: import('./chart.js').Line[], increments?: number[] }} Chart */

const WHOLE_MEGABYTES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024, 2048, 5120, 10_240, 51_200, 102_400].map((megabytes) => megabytes * 1024 ** 2)

/** @type {readonly Chart[]} */
const CHARTS = [
  { id: 'requests', format: (value) => value === null || value === undefined ? '–' : `${formatRate(value)}/s`, lines: [{ column: 'requestsPerSecond', label: 'all', tone: '--info', isFilled: true }, { column: 'requests5xx', label: '5xx', tone: '--bad' }] },
  { id: 'latency', format: formatLatency, lines: [{ column: 'latencyP99Ms', label: 'p99', tone: '--drain', isFilled: true }, { column: 'latencyP50Ms', label: 'p50', tone: '--info' }] },
  { id: 'cpu', format: formatPercent, lines: [{ column: 'cpuPercent', label: 'all workers', tone: '--info', isFilled: true }] },
  { id: 'memory', format: formatBytes, increments: WHOLE_MEGABYTES, lines: [{ column: 'rssBytes', label: 'all workers', tone: '--info', isFilled: true }] },
  { id: 'loop', format: formatLatency, lines: [{ column: 'loopDelayP99Ms', label: 'worst p99', tone: '--warn', isFilled: true }] }
]

const section = /** @type {HTMLElement} */ (document.getElementById('charts'))
const list = /** @type {HTMLElement} */ (document.getElementById('charts-marks'))
const choice = /** @type {HTMLSelectElement} */ (document.getElementById('charts-range'))
/** @type {import('./vitals-feed.js').Vitals | null} */
let vitals = null

const charts = CHARTS.map((chart) => {
  const figure = /** @type {HTMLElement} */ (document.getElementById(`chart-${chart.id}`))
  const place = /** @type {HTMLElement} */ (figure.querySelector('.chart-place'))
  const plot = createChart({ place, lines: chart.lines, format: chart.format, increments: chart.increments, onPoint: (index) => read(chart, figure, index) })
  return { ...chart, figure, plot }
})
const feed = createFeed({ columns: CHARTS.flatMap(({ lines }) => lines.map(({ column }) => column)), onChange: show })
const marks = createMarks({ recent: document.getElementById('recent'), faults: String(section.dataset.faults).split(' '), onChange: mark })

choose()
choice.addEventListener('change', choose)
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ['data-theme'] })
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw)

function choose () {
  feed.show(choice.value)
  marks.since(Date.now() - RANGES[choice.value].ms)
}

/** @param {import('./vitals-feed.js').Vitals} newest @param {{ fromS: number, toS: number }} range */
function show (newest, range) {
  vitals = newest
  section.dataset.state = newest.time.length === 0 ? 'empty' : 'shown'
  for (const { plot } of charts) plot.show(newest, range)
  for (const chart of charts) read(chart, chart.figure, null)
}

function redraw () {
  for (const { plot } of charts) plot.redraw()
}

/** The value at the pointer, or the newest: for the eye and for who cannot see the line. @param {Chart} chart @param {HTMLElement} figure @param {number | null} index */
function read ({ lines, format }, figure, index) {
  for (const { column } of lines) {
    const values = vitals?.[column] ?? []
    const value = index === null ? values.findLast((one) => one !== null) : values[index]
    const place = figure.querySelector(`[data-column="${column}"]`)
    const text = format(value)
    if (place && place.textContent !== text) place.textContent = text
  }
}

/** @param {import('./chart-marks.js').Mark[]} all */
function mark (all) {
  for (const { plot } of charts) plot.mark(all)
  list.replaceChildren(...all.slice(-20).reverse().map(({ second, tone, text }) => {
    const item = document.createElement('li')
    item.className = `tone-${tone}`
    item.textContent = `${new Date(second * 1000).toLocaleTimeString('en-GB')} ${text}`
    return item
  }))
}
