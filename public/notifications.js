import { BASE } from './base.js'
import { formatTime } from './format.js'
import { choicesOf, preference, setPreference } from './preferences.js'
import { serverTime } from './ticks.js'
import { timeZone } from './times.js'
import { showToast } from './toasts.js'

/**
 * Shows notifications of the browser while the page is in the background, of the kinds that the viewer has chosen. The
 * alarms come over the socket of this page.
 * @typedef {import('./live-events.d.ts').Alarm} Alarm
 * @typedef {import('./page.d.ts').LiveSocket} Socket
 */

/** The first alarm of a kind is shown at once; those within this time after it are shown as one. */
const GAP_MS = 5000
/** A shorter loss of the connection is not notified: the network may blink, and the next master may start. */
const SILENCE_MS = 15_000

/** @type {Socket | null} */
let socket = null
/** @type {ReturnType<typeof setTimeout> | undefined} */
let silence
/** Alarms since the first one of the gap, by kind. @type {Map<string, { newest: Alarm | null, count: number }>} */
const waiting = new Map()

/** @param {Socket} connection of this page */
export function startNotifications (connection) {
  if (socket) return showPermission()
  socket = connection
  socket.on('connect', () => askForAlarms(lastHeard()))
  socket.on('alarm', onAlarm)
  socket.on('disconnect', () => {
    const since = formatTime(new Date(serverTime()).toISOString(), { timeZone: timeZone() })
    clearTimeout(silence)
    silence = setTimeout(saySilence, SILENCE_MS, since)
  })
  document.addEventListener('clusterdeck:preference', ({ detail }) => {
    // Alarms from before the choice are not shown.
    if (detail === 'notify') askForAlarms(null)
  })
  document.addEventListener('change', onChoice)
  document.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('[data-try]')) tryOut()
  })
  askForAlarms(lastHeard())
  showPermission()
}

/** @param {number | null} after the newest event that this browser knows of */
function askForAlarms (after) {
  clearTimeout(silence)
  if (!socket?.connected) return
  socket.emit('notify', { kinds: choicesOf('notify'), after }, ({ last }) => setPreference('notified', String(last)))
}

function lastHeard () {
  const text = preference('notified')
  return text === '' ? null : Number(text)
}

/** @param {Alarm} alarm */
function onAlarm (alarm) {
  setPreference('notified', String(Math.max(alarm.id, lastHeard() ?? 0)))
  const others = waiting.get(alarm.kind)
  if (others) return Object.assign(others, { newest: alarm, count: others.count + 1 })
  waiting.set(alarm.kind, { newest: null, count: 0 })
  showAlarm(alarm)
  setTimeout(sayRest, GAP_MS, alarm.kind)
}

/** @param {string} kind */
function sayRest (kind) {
  const { newest, count } = waiting.get(kind) ?? { newest: null, count: 0 }
  waiting.delete(kind)
  if (newest) showAlarm({ ...newest, title: count > 1 ? `${newest.title} (${count} more)` : newest.title })
}

/** @param {string} since */
function saySilence (since) {
  if (choicesOf('notify').includes('master-lost')) {
    showAlarm({ id: 0, kind: 'master-lost', title: 'No connection', text: `The master has not answered since ${since}.`, url: '' })
  }
}

/** Shows nothing while the page has the focus, as the page itself shows the problem. @param {Alarm} alarm */
function showAlarm (alarm) {
  if (!document.hasFocus()) showNotification(alarm)
}

/** @param {Pick<Alarm, 'title' | 'text' | 'url'> & { kind: string }} alarm @throws {TypeError} where only apps may notify, as on phones */
function showNotification ({ kind, title, text, url }) {
  if (whyRefused()) return
  const notification = new Notification(`${title} · ${document.getElementById('whose')?.title}`, { body: text, tag: `clusterdeck-${kind}` })
  notification.onclick = () => {
    window.focus()
    notification.close()
    if (url) location.assign(BASE + url)
  }
}

/** @returns {string | null} why this browser shows none */
function whyRefused () {
  if (!('Notification' in window)) return 'This browser shows notifications only for https pages or pages of this machine.'
  if (Notification.permission === 'denied') return 'Notifications of this address are blocked in the settings of the browser.'
  return Notification.permission === 'default' ? 'The browser will ask for permission when you choose something.' : null
}

function showPermission () {
  /** @type {HTMLElement | null} */
  const place = document.querySelector('#dialog-notifications [data-refused]')
  if (!place) return
  const isWaiting = 'Notification' in window && Notification.permission === 'default' && choicesOf('notify').length === 0
  const text = isWaiting ? null : whyRefused()
  place.hidden = text === null
  place.textContent = text
}

/** A browser asks its user when they choose something, and at no other moment. @param {Event} event */
async function onChoice ({ target }) {
  if (!(target instanceof HTMLInputElement) || target.dataset.preference !== 'notify') return
  if (target.checked) await askPermission()
}

async function askPermission () {
  if ('Notification' in window && Notification.permission === 'default') await Notification.requestPermission()
  showPermission()
}

async function tryOut () {
  await askPermission()
  const reason = whyRefused()
  if (reason) return showToast(reason)
  try {
    showNotification({ kind: 'try', title: 'Test notification', text: 'A notification names the problem. Click it to open the page.', url: '' })
  } catch {
    showToast('This browser allows notifications only for installed apps.')
  }
}
