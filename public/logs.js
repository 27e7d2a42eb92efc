import { BASE } from './base.js'
import { byId, findElement, setText } from './elements.js'
import { createTail } from './log-tail.js'
import { MAX_LINES, createView } from './log-view.js'
import { formatCount } from './log-text.js'

/** The page of the logs: its switches, the lines, and the tail that brings them unless older ones were asked for. */

/** @type {Readonly<Record<string, string>>} */
const STATES = Object.freeze({ connecting: 'Connecting', live: 'Live', paused: 'Paused', lost: 'Connection lost, reconnecting' })
const WRAP = 'clusterdeck-logs-wrap'

/** @type {{ panel: HTMLElement, end: () => void, start: () => void, stop: () => void } | null} */
let current = null

attachLogs()
beginJump()
// The filters have changed, or the browser went back.
document.addEventListener('htmx:after:swap', attachLogs)
document.addEventListener('visibilitychange', toggleTail)
addEventListener('pagehide', () => current?.stop())
addEventListener('pageshow', toggleTail)

function attachLogs () {
  const panel = document.getElementById('log')
  if (current && panel === current.panel) return
  current?.end()
  current = panel && document.getElementById('log-lines') ? openPanel(panel) : null
  // Hides tools that do nothing without lines, or without live lines.
  const isLive = Boolean(panel?.dataset.stream)
  for (const [id, isOf] of Object.entries({ 'log-tools': current !== null, 'log-follow': isLive, 'log-clear': isLive })) {
    const tool = document.getElementById(id)
    if (tool) tool.hidden = !isOf
  }
  toggleTail()
}

/** Takes a time in the viewer's time zone for a form that sends UTC. */
function beginJump () {
  const [time, around, search] = ['log-time', 'log-around', 'log-search'].map((id) => findElement(`#${id}`, HTMLInputElement))
  byId('log-jump-to').hidden = false
  const at = Date.parse(around.value)
  if (Number.isFinite(at)) time.value = new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
  time.addEventListener('change', () => {
    around.value = time.value === '' ? '' : new Date(time.value).toISOString()
    search.value = ''
  })
  search.addEventListener('input', () => { around.value = time.value = '' })
}

/** Stops the tail while the page is hidden; it continues from the same place. */
function toggleTail () {
  if (document.hidden) current?.stop()
  else current?.start()
}

/** @param {HTMLElement} panel */
function openPanel (panel) {
  const stopped = new AbortController()
  const isLive = Boolean(panel.dataset.stream)
  const [list, follow] = ['log-lines', 'log-follow'].map(byId)
  // Lines that are not live have none.
  const jump = document.getElementById('log-jump')
  const search = findElement('#log-filter', HTMLInputElement)
  /** @type {import('./log-tail.js').State | 'connecting'} */
  let connection = 'connecting'
  let isCleared = false
  const view = createView(list, isLive ? showState : showMatching, { mark: document.getElementById('log-mark') })
  const tail = isLive
    ? createTail({ url: BASE + String(panel.dataset.stream), places: String(panel.dataset.places), onEntries: (entries) => view.add(entries), onState })
    : null

  const listenTo = (/** @type {HTMLElement} */ target, /** @type {string} */ type, /** @type {() => void} */ handler) => {
    target.addEventListener(type, handler, { signal: stopped.signal })
  }
  if (jump) {
    listenTo(follow, 'click', () => view.follow(!isPressed(follow)))
    listenTo(jump, 'click', () => {
      view.follow(true)
      list.focus({ preventScroll: true })
    })
  }
  listenTo(search, 'input', () => view.filter(search.value.trim()))
  listenTo(byId('log-wrap'), 'click', () => wrapLines(!isPressed(byId('log-wrap'))))
  listenTo(byId('log-clear'), 'click', () => {
    isCleared = true
    view.clear()
  })
  wrapLines(readWrap() !== 'off')
  view.filter(search.value.trim())

  return {
    panel,
    start: () => tail?.start(),
    stop: () => tail?.stop(),
    end () {
      stopped.abort()
      tail?.stop()
      view.end()
    }
  }

  /** @param {import('./log-tail.js').State} state */
  function onState (state) {
    if (state === connection) return
    if (state === 'lost') view.add([{ note: 'connection lost' }])
    else if (connection === 'lost') view.add([{ note: 'reconnected, output continues' }])
    connection = state
    view.report()
  }

  /** @param {import('./log-view.js').ViewState} state */
  function showState ({ isFollowing, waiting, shown, matching }) {
    setPressed(follow, isFollowing)
    jump?.toggleAttribute('hidden', isFollowing || waiting === 0)
    setText(byId('log-jump-text'), `${formatCount(waiting)} new ${waiting === 1 ? 'line' : 'lines'}, jump to end`)
    byId('log-empty').hidden = list.childElementCount > 0
    setText(byId('log-empty-title'), isCleared ? 'View cleared' : 'No output yet')
    panel.dataset.state = connection === 'live' && !isFollowing ? 'paused' : connection
    setText(byId('log-state'), STATES[panel.dataset.state])
    const lines = `${formatCount(shown)} ${shown === 1 ? 'line' : 'lines'}`
    setText(byId('log-count'), search.value.trim() === ''
      ? `${lines} shown, ${formatCount(MAX_LINES)} at most`
      : `${formatCount(matching)} of the ${lines} on this page match`)
  }

  /** @param {import('./log-view.js').ViewState} state */
  function showMatching ({ shown, matching }) {
    setText(byId('log-count'), search.value.trim() === ''
      ? ''
      : `${formatCount(matching)} of the ${formatCount(shown)} ${shown === 1 ? 'line' : 'lines'} on this page match`)
  }

  /** @param {boolean} isOn */
  function wrapLines (isOn) {
    setPressed(byId('log-wrap'), isOn)
    list.classList.toggle('is-wrapped', isOn)
    writeWrap(isOn ? 'on' : 'off')
    view.settle()
  }
}

// Storage may be forbidden; the choice then lasts as long as the page.
function readWrap () {
  try { return localStorage.getItem(WRAP) } catch { return null }
}

function writeWrap (/** @type {string} */ value) {
  try { localStorage.setItem(WRAP, value) } catch {}
}

function isPressed (/** @type {HTMLElement} */ button) {
  return button.getAttribute('aria-pressed') === 'true'
}

function setPressed (/** @type {HTMLElement} */ button, /** @type {boolean} */ isOn) {
  button.setAttribute('aria-pressed', String(isOn))
}
