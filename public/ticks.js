import { formatAgo, formatDuration, formatTime } from './format.js'

/** What goes on by itself between two messages of the server: uptimes, countdowns, and clocks in the viewer's time zone. */

/** @type {Readonly<Record<string, (ms: number) => string>>} `ms` since the moment, negative before it */
const TEXTS = Object.freeze({
  since: formatDuration,
  until: (ms) => formatDuration(Math.max(0, -ms)),
  ago: formatAgo
})

/** Server time minus ours. */
let offsetMs = 0

/** @param {number} now the server's clock, ms since the epoch; ours may be wrong by hours */
export function setServerTime (now) {
  offsetMs = now - Date.now()
}

/** @param {ParentNode} [root] */
export function tick (root = document) {
  const now = Date.now() + offsetMs
  for (const element of root.querySelectorAll('time[data-tick]')) {
    const { dataset, dateTime } = /** @type {HTMLTimeElement} */ (element)
    setText(element, TEXTS[dataset.tick ?? 'since'](now - Date.parse(dateTime)))
  }
}

/** @param {ParentNode} [root] */
export function localise (root = document) {
  for (const element of root.querySelectorAll('time[data-clock]')) {
    const { dataset, dateTime } = /** @type {HTMLTimeElement} */ (element)
    setText(element, formatTime(dateTime, { isLong: dataset.clock === 'long' }))
  }
}

/** From now on, once a second. */
export function startTicking () {
  setServerTime(Number(document.documentElement.dataset.now) || Date.now())
  tick()
  localise()
  setInterval(() => { if (!document.hidden) tick() }, 1000)
  document.addEventListener('visibilitychange', () => { if (!document.hidden) tick() })
}

/** Untouched when nothing changes, so that a selection of the text survives. */
function setText (/** @type {Element} */ element, /** @type {string} */ text) {
  if (element.textContent !== text) element.textContent = text
}
