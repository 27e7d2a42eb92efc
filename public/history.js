import { formatTime } from './format.js'
import { showSavedFilters } from './saved-filters.js'
import { timeZone } from './times.js'

/**
 * The times of the history: a part of its graph that is dragged over, two fields, and ranges by the days of whoever looks.
 * @typedef {{ from: number, stepMs: number, counts: { count: number, problems: number }[] }} Graph
 */

/** @type {{ first: number, last: number } | null} steps of the graph that are dragged over */
let dragged = null

begin()
document.addEventListener('htmx:after:swap', begin)
document.addEventListener('clusterdeck:preference', begin)
document.addEventListener('pointerdown', start)
document.addEventListener('pointermove', move)
document.addEventListener('pointerup', finish)
document.addEventListener('pointercancel', forget)
document.addEventListener('pointerout', ({ target }) => { if (!dragged && plotOf(target)) read(null) })
document.addEventListener('keydown', ({ key }) => { if (key === 'Escape' && dragged) forget() })
document.addEventListener('change', ({ target }) => {
  if (target === field('time-since') || target === field('time-until')) choose({ since: instantOf(field('time-since')), until: instantOf(field('time-until')) })
})

/** After each change of the page: the server knows neither the zone of whoever looks, nor what this browser keeps. */
function begin () {
  const ends = document.getElementById('timeline-ends')
  if (!ends) return
  const zone = timeZone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  for (const link of document.querySelectorAll('a[data-daily]')) {
    const { pathname, searchParams } = new URL(/** @type {HTMLAnchorElement} */ (link).href)
    searchParams.set('zone', zone)
    link.setAttribute('href', `${pathname}?${searchParams}`)
  }
  // A range that somebody has typed, or a link from elsewhere.
  const daily = /** @type {HTMLAnchorElement | null} */ (document.querySelector('a[data-daily][aria-current]'))
  if (daily && field('filter-zone').value === '' && zone !== 'UTC') return location.replace(daily.href)
  ends.hidden = false
  showEnds()
  showSavedFilters()
}

/** What is chosen, else what the graph shows. */
function showEnds () {
  const graph = readGraph()
  showEnd('since', graph?.from)
  showEnd('until', graph ? graph.from + graph.counts.length * graph.stepMs : undefined)
}

/** @param {'since' | 'until'} name @param {number | undefined} shown */
function showEnd (name, shown) {
  const input = field(`time-${name}`)
  const given = Date.parse(field(`filter-${name}`).value)
  input.classList.toggle('is-open', !Number.isFinite(given))
  // Somebody is about to say it.
  if (document.activeElement === input) return
  const at = Number.isFinite(given) ? given : shown
  input.value = at === undefined ? '' : localOf(at)
}

/** @param {PointerEvent} event */
function start (event) {
  const plot = plotOf(event.target)
  if (!plot || !event.isPrimary || event.button !== 0) return
  const step = stepAt(event)
  dragged = { first: step, last: step }
  plot.setPointerCapture(event.pointerId)
  // No text is to be selected.
  event.preventDefault()
  mark()
}

/** @param {PointerEvent} event */
function move (event) {
  if (dragged) {
    dragged.last = stepAt(event)
    mark()
  } else if (plotOf(event.target)) {
    read({ first: stepAt(event), last: stepAt(event) })
  }
}

function finish () {
  if (!dragged) return
  const { since, until, isToEnd } = /** @type {{ since: number, until: number, isToEnd: boolean }} */ (timesOf(dragged))
  forget()
  // What comes is in a part that goes on to the end, as it was before.
  choose({ since: new Date(since).toISOString(), until: isToEnd ? field('filter-until').value : new Date(until).toISOString() })
}

function forget () {
  dragged = null
  mark()
}

/** @param {{ since: string, until: string }} times empty: open */
function choose ({ since, until }) {
  for (const [name, value] of [['since', since], ['until', until], ['range', ''], ['zone', '']]) field(`filter-${name}`).value = value
  const form = /** @type {HTMLFormElement} */ (document.getElementById('filters'))
  form.requestSubmit()
}

function mark () {
  const graph = readGraph()
  const chosen = document.getElementById('timeline-chosen')
  if (!graph || !chosen) return
  const [first, last] = dragged ? [Math.min(dragged.first, dragged.last), Math.max(dragged.first, dragged.last) + 1] : [0, 0]
  chosen.setAttribute('x', String(first / graph.counts.length))
  chosen.setAttribute('width', String((last - first) / graph.counts.length))
  read(dragged)
}

/** What a part of the graph stands for. @param {{ first: number, last: number } | null} part */
function read (part) {
  const output = document.getElementById('timeline-read')
  const times = part && timesOf(part)
  if (!output) return
  if (!times) return output.replaceChildren()
  const isBad = times.problems === times.count && times.count > 0
  const numbers = [...(isBad ? [] : [count(times.count, 'event')]), ...(times.problems === 0 ? [] : [count(times.problems, 'problem')])].join(', ')
  const text = `${formatTime(new Date(times.since).toISOString(), { timeZone: timeZone() })} – ${formatTime(new Date(times.until).toISOString(), { timeZone: timeZone() })}: ${numbers}`
  if (output.textContent !== text) output.textContent = text
}

/** @param {{ first: number, last: number }} part */
function timesOf (part) {
  const graph = readGraph()
  if (!graph) return null
  const [first, last] = [Math.min(part.first, part.last), Math.max(part.first, part.last)]
  const steps = graph.counts.slice(first, last + 1)
  const sum = (/** @type {'count' | 'problems'} */ name) => steps.reduce((total, step) => total + step[name], 0)
  return { since: graph.from + first * graph.stepMs, until: graph.from + (last + 1) * graph.stepMs, isToEnd: last === graph.counts.length - 1, count: sum('count'), problems: sum('problems') }
}

/** It is replaced while somebody looks. @returns {Graph | null} */
function readGraph () {
  const element = document.getElementById('timeline-graph')
  if (!element) return null
  const counts = String(element.dataset.counts).split(' ').map((text) => text.split(',').map(Number)).map(([count, problems]) => ({ count, problems }))
  return { from: Date.parse(String(element.dataset.from)), stepMs: Number(element.dataset.step), counts }
}

/** @param {PointerEvent} event */
function stepAt ({ clientX }) {
  const { left, width } = /** @type {HTMLElement} */ (document.getElementById('timeline-choice')).getBoundingClientRect()
  const { length } = /** @type {Graph} */ (readGraph()).counts
  return Math.min(length - 1, Math.max(0, Math.floor((clientX - left) / width * length)))
}

/** @param {EventTarget | null} target @returns {HTMLElement | null} */
function plotOf (target) {
  return target instanceof Element ? target.closest('#timeline-plot') : null
}

/** @param {number} at @returns {string} as a field of this kind has it */
function localOf (at) {
  const offsetMs = timeZone() === 'UTC' ? 0 : new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - offsetMs).toISOString().slice(0, 19)
}

/** @param {HTMLInputElement} input @returns {string} empty: none, or the one that was only shown */
function instantOf (input) {
  const shown = input.classList.contains('is-open') && document.activeElement !== input
  return shown || input.value === '' ? '' : new Date(timeZone() === 'UTC' ? `${input.value}Z` : input.value).toISOString()
}

/** @param {number} number @param {string} noun */
function count (number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function field (/** @type {string} */ id) {
  return /** @type {HTMLInputElement} */ (document.getElementById(id))
}
