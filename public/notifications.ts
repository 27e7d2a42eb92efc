import { BASE } from './base.ts'
import { formatTime } from './format.ts'
import { choicesOf, preference, setPreference } from './preferences.ts'
import { serverTime } from './ticks.ts'
import { timeZone } from './times.ts'
import { showToast } from './toasts.ts'
import type { Alarm } from './live-events.d.ts'
import type { LiveSocket as Socket } from './page.d.ts'

/**
 * Shows notifications of the browser while the page is in the background, of the kinds that the viewer has chosen. The
 * alarms come over the socket of this page.
 */

/** The first alarm of a kind is shown at once; those within this time after it are shown as one. */
const GAP_MS = 5000
/** A shorter loss of the connection is not notified: the network may blink, and the next master may start. */
const SILENCE_MS = 15_000

let socket: Socket | null = null
let silence: ReturnType<typeof setTimeout> | undefined
/** Alarms since the first one of the gap, by kind. */
const waiting: Map<string, { newest: Alarm | null, count: number }> = new Map()

/** `connection`: of this page */
export function startNotifications (connection: Socket) {
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

/** `after`: the newest event that this browser knows of */
function askForAlarms (after: number | null) {
  clearTimeout(silence)
  if (!socket?.connected) return
  socket.emit('notify', { kinds: choicesOf('notify'), after }, ({ last }) => setPreference('notified', String(last)))
}

function lastHeard () {
  const text = preference('notified')
  return text === '' ? null : Number(text)
}

function onAlarm (alarm: Alarm) {
  setPreference('notified', String(Math.max(alarm.id, lastHeard() ?? 0)))
  const others = waiting.get(alarm.kind)
  if (others) return Object.assign(others, { newest: alarm, count: others.count + 1 })
  waiting.set(alarm.kind, { newest: null, count: 0 })
  showAlarm(alarm)
  setTimeout(sayRest, GAP_MS, alarm.kind)
}

function sayRest (kind: string) {
  const { newest, count } = waiting.get(kind) ?? { newest: null, count: 0 }
  waiting.delete(kind)
  if (newest) showAlarm({ ...newest, title: count > 1 ? `${newest.title} (${count} more)` : newest.title })
}

function saySilence (since: string) {
  if (choicesOf('notify').includes('master-lost')) {
    showAlarm({ id: 0, kind: 'master-lost', title: 'No connection', text: `The master has not answered since ${since}.`,
      url: '' })
  }
}

/** Shows nothing while the page has the focus, as the page itself shows the problem. */
function showAlarm (alarm: Alarm) {
  if (!document.hasFocus()) showNotification(alarm)
}

/** @throws {TypeError} where only apps may notify, as on phones */
function showNotification ({ kind, title, text, url }: Pick<Alarm, 'title' | 'text' | 'url'> & { kind: string }) {
  if (whyRefused()) return
  const notification = new Notification(`${title} · ${document.getElementById('whose')?.title}`, { body: text,
    tag: `clusterdeck-${kind}` })
  notification.onclick = () => {
    window.focus()
    notification.close()
    if (url) location.assign(BASE + url)
  }
}

function whyRefused (): string | null {
  if (!('Notification' in window))
    return 'This browser shows notifications only for https pages or pages of this machine.'
  if (Notification.permission === 'denied')
    return 'Notifications of this address are blocked in the settings of the browser.'
  return Notification.permission === 'default' ? 'The browser will ask for permission when you choose something.' : null
}

function showPermission () {
  const place: HTMLElement | null = document.querySelector('#dialog-notifications [data-refused]')
  if (!place) return
  const isWaiting = 'Notification' in window && Notification.permission === 'default' &&
    choicesOf('notify').length === 0
  const text = isWaiting ? null : whyRefused()
  place.hidden = text === null
  place.textContent = text
}

/** A browser asks its user when they choose something, and at no other moment. */
async function onChoice ({ target }: Event) {
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
    showNotification({ kind: 'try', title: 'Test notification',
      text: 'A notification names the problem. Click it to open the page.', url: '' })
  } catch {
    showToast('This browser allows notifications only for installed apps.')
  }
}
