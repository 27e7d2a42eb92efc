import { findElement, setText } from './elements.ts'
import { formatTime } from './format.ts'
import { openFolds } from './open-folds.ts'
import { showSavedFilters } from './saved-filters.ts'
import { showTime, timeIn } from './time-field.ts'
import { timeZone } from './times.ts'

/**
 * Chooses times of the history: by dragging over the graph, by two fields, or by days in the time zone of the viewer.
 */
type Graph = { from: number, stepMs: number, counts: { count: number, problems: number }[] }

/** steps of the graph that are dragged over */
let dragged: { first: number, last: number } | null = null

attachTimeline()
document.addEventListener('htmx:after:swap', attachTimeline)
document.addEventListener('clusterdeck:preference', attachTimeline)
document.addEventListener('pointerdown', startSelection)
document.addEventListener('pointermove', moveSelection)
document.addEventListener('pointerup', finishSelection)
document.addEventListener('pointercancel', dropSelection)
document.addEventListener('pointerout', ({ target }) => {
  if (!dragged && plotOf(target)) describePart(null)
})
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape' && dragged) dropSelection()
})
document.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !['time-since', 'time-until'].includes(target.id)) return
  target.classList.remove('is-open')
  const [since, until] = ['time-since', 'time-until'].map((id) => chosenIn(fieldOf(id)))
  if (since !== null && until !== null) chooseRange({ since, until })
})

/** Runs after each change of the page, as the server does not know the time zone and the settings of this browser. */
function attachTimeline () {
  const ends = document.getElementById('timeline-ends')
  if (!ends) return
  const zone = timeZone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  const days: NodeListOf<HTMLAnchorElement> = document.querySelectorAll('a[data-daily]')
  for (const link of days) {
    const { pathname, searchParams } = new URL(link.href)
    searchParams.set('zone', zone)
    link.setAttribute('href', `${pathname}?${searchParams}`)
  }
  // A range of days without a zone, such as of a typed URL, gets the zone of this browser.
  const daily = Array.from(days).find((link) => link.hasAttribute('aria-current'))
  if (daily && fieldOf('filter-zone').value === '' && zone !== 'UTC') return location.replace(daily.href)
  ends.classList.remove('is-waiting')
  showEnds()
  showSavedFilters()
  openFolds()
}

/** Shows the chosen start and end, or those of the graph. */
function showEnds () {
  const graph = readGraph()
  showEnd('since', graph?.from)
  showEnd('until', graph ? graph.from + graph.counts.length * graph.stepMs : undefined)
}

function showEnd (name: 'since' | 'until', shown: number | undefined) {
  const input = fieldOf(`time-${name}`)
  const given = Date.parse(fieldOf(`filter-${name}`).value)
  input.classList.toggle('is-open', !Number.isFinite(given))
  // The viewer is typing here.
  if (document.activeElement === input) return
  showTime(input, Number.isFinite(given) ? given : shown)
}

function startSelection (event: PointerEvent) {
  const plot = plotOf(event.target)
  if (!plot || !event.isPrimary || event.button !== 0) return
  const step = stepAt(event)
  dragged = { first: step, last: step }
  plot.setPointerCapture(event.pointerId)
  // Dragging would otherwise select text.
  event.preventDefault()
  showSelection()
}

function moveSelection (event: PointerEvent) {
  if (dragged) {
    dragged.last = stepAt(event)
    showSelection()
  } else if (plotOf(event.target)) {
    describePart({ first: stepAt(event), last: stepAt(event) })
  }
}

function finishSelection () {
  const times = dragged && timesOf(dragged)
  if (!times) return
  const { since, until, isToEnd } = times
  dropSelection()
  // A part that reaches to the end of the graph keeps its open end, so that new events are in it.
  chooseRange({ since: new Date(since).toISOString(),
    until: isToEnd ? fieldOf('filter-until').value : new Date(until).toISOString() })
}

function dropSelection () {
  dragged = null
  showSelection()
}

/** `times`: empty: open */
function chooseRange ({ since, until }: { since: string, until: string }) {
  for (const [name, value] of [['since', since], ['until', until], ['range', ''], ['zone', '']])
    fieldOf(`filter-${name}`).value = value
  findElement('#filters', HTMLFormElement).requestSubmit()
}

function showSelection () {
  const graph = readGraph()
  const chosen = document.getElementById('timeline-chosen')
  if (!graph || !chosen) return
  const [first, last] = dragged
    ? [Math.min(dragged.first, dragged.last), Math.max(dragged.first, dragged.last) + 1]
    : [0, 0]
  chosen.setAttribute('x', String(first / graph.counts.length))
  chosen.setAttribute('width', String((last - first) / graph.counts.length))
  describePart(dragged)
}

function describePart (part: { first: number, last: number } | null) {
  const output = document.getElementById('timeline-read')
  const times = part && timesOf(part)
  if (!output) return
  if (!times) return output.replaceChildren()
  const isBad = times.problems === times.count && times.count > 0
  const numbers = [...(isBad ? [] : [countText(times.count, 'event')]),
    ...(times.problems === 0 ? [] : [countText(times.problems, 'problem')])].join(', ')
  const [from, to] = [times.since, times.until].map((ms) =>
    formatTime(new Date(ms).toISOString(), { timeZone: timeZone() })
  )
  setText(output, `${from} – ${to}: ${numbers}`)
}

function timesOf (part: { first: number, last: number }) {
  const graph = readGraph()
  if (!graph) return null
  const [first, last] = [Math.min(part.first, part.last), Math.max(part.first, part.last)]
  const steps = graph.counts.slice(first, last + 1)
  const sumOf = (name: 'count' | 'problems') => steps.reduce((total, step) => total + step[name], 0)
  return { since: graph.from + first * graph.stepMs, until: graph.from + (last + 1) * graph.stepMs,
    isToEnd: last === graph.counts.length - 1, count: sumOf('count'), problems: sumOf('problems') }
}

/** It is replaced while somebody looks. */
function readGraph (): Graph | null {
  const element = document.getElementById('timeline-graph')
  if (!element) return null
  const counts = String(element.dataset.counts).split(' ').map((text) => text.split(',').map(Number)).map((
    [count, problems]
  ) => ({ count, problems }))
  return { from: Date.parse(String(element.dataset.from)), stepMs: Number(element.dataset.step), counts }
}

function stepAt ({ clientX }: PointerEvent) {
  const { left, width } = findElement('#timeline-choice', SVGElement).getBoundingClientRect()
  const length = readGraph()?.counts.length ?? 0
  return Math.min(length - 1, Math.max(0, Math.floor((clientX - left) / width * length)))
}

function plotOf (target: EventTarget | null): HTMLElement | null {
  return target instanceof Element ? target.closest('#timeline-plot') : null
}

/** @returns empty: none, or one that is only shown; null: it is no time */
function chosenIn (input: HTMLInputElement): string | null {
  return input.classList.contains('is-open') ? '' : timeIn(input)
}

function countText (number: number, noun: string) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function fieldOf (id: string) {
  return findElement(`#${id}`, HTMLInputElement)
}
