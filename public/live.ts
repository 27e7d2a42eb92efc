import { BASE, HOME, IS_HOST } from './base.ts'
import { startCopying } from './copy.ts'
import { startDialogs } from './dialogs.ts'
import { byId, findElement } from './elements.ts'
import { completeParts, glideFromHere, keepFocus, showFigures } from './fragments.ts'
import { choicesOf } from './preferences.ts'
import { signInAgain } from './session.ts'
import { startShortcuts } from './shortcuts.ts'
import { keepNotice, showKeptNotice, showToast } from './toasts.ts'
import { localiseTimes, serverTime, setServerTime, startTicking, updateTicks } from './ticks.ts'
import { startTimes } from './times.ts'
import { startTimeStrip } from './time-strip.ts'
import type { SentFragment, ServerEvents } from './live-events.d.ts'
import type { LiveSocket } from './page.d.ts'

/** Keeps the page as it is on the server: fragments come over socket.io and are morphed in by id. */
type Update = Parameters<ServerEvents['fragments']>[0]

/** The master may be away. */
const AGAIN_MS = 3000

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries)
    if (isIntersecting && target instanceof HTMLElement) loadScript(target)
})

const ownTitle = document.title

const { htmx, io } = window
/** No connection takes longer if all is well: by then the page says that it is not live. */
const CONNECTS_WITHIN_MS = 3000
/** After fewer errors in a row, although the master answers other requests, it may just have been replaced. */
const BLOCKED_AFTER = 3
document.documentElement.dataset.scripts = 'on'
const offline = byId('offline')
/** Elements that send a request to the master, on the page or in an open dialog. */
const ORDERS =
  'main [data-dialog], main [hx-post], main form:is([method=post], [data-scripted]), #decks-open, #decks form, dialog [hx-post] [type=submit]'
/** If more rows are new at once, none flashes. */
const MAX_FLASHES = 12
/** The proxy that has signed the viewer in does so again for a whole page alone. */
const isByProxy = document.querySelector('.viewer') !== null
const hasCalmMotion = matchMedia('(prefers-reduced-motion: reduce)')

startTimes()
startTimeStrip()
startTicking()
startDialogs()
startCopying()
startShortcuts()
startLateScripts()
showTrouble(false)
showKeptNotice()
// htmx starts in a later turn, so this waits for it.
setTimeout(searchForEarlyWords)

const socket: LiveSocket = io({ path: `${BASE}/socket.io/`, transports: ['websocket', 'polling'],
  tryAllTransports: true, reconnectionDelay: 300, reconnectionDelayMax: 2000 })
/** When the master was heard last, by its own clock. */
let heardAt = serverTime()
socket.on('connect', watchPage)
socket.io.on('ping', noteHeard)
socket.on('fragments', showUpdate)
socket.on('signed-out', leave)
// When the viewer signs out here, the form already leads to the next page.
document.querySelector('form[action$="/sign-out"]')?.addEventListener('submit', () => socket.off('signed-out'))
socket.on('disconnect', () => setLive(false))
setTimeout(() => {
  if (!socket.connected) setLive(false)
}, CONNECTS_WITHIN_MS)
socket.on('connect_error', async () => {
  setLive(false)
  const status = await statusOfApi()
  sayBlocked(status === 200)
  if (status === 401 || (isByProxy && [0, 403].includes(Number(status)))) leave()
  // The app does not run any more: its page says so, and offers to start it.
  else if (status === 409) location.reload()
})
if (choicesOf('notify').length > 0) followNotifications()
document.addEventListener('clusterdeck:notifications', followNotifications)
// The filters of the history change the address without a new page.
document.addEventListener('htmx:after:swap', () => {
  updateTicks()
  localiseTimes()
  if (location.href === watched) return
  shown = {}
  watchPage()
})
document.addEventListener('visibilitychange', () => {
  if (socket.connected) watchPage()
})
document.addEventListener('clusterdeck:signed-in', comeBack)
findElement('[data-sign-in]', HTMLElement, offline).addEventListener('click',
  () => isByProxy ? location.reload() : signInAgain())

// The range of the charts changes the address, too.
document.addEventListener('clusterdeck:address', () => {
  if (location.href !== watched) watchPage()
})

/** the address that the server knows of */
let watched: string | undefined

/** How often in a row the master answered, but not the live connection. */
let blocked = 0

/** Hashes of the parts of this page, by id. */
let shown: Record<string, string> = JSON.parse(byId('toasts').dataset.shown ?? '{}')

/** Asks the server for the changes of this page, also after a lost connection: it answers with all that differs. */
function watchPage () {
  watched = location.href
  socket.emit('watch', watchedPath(), shown, ({ version, software }) => {
    sayBlocked(false)
    setLive(true)
    const { assets, software: known } = document.documentElement.dataset
    const notice = software === known ? null : `The master was upgraded to ${software}.`
    document.documentElement.dataset.software = software
    if (version === assets) return notice && showToast(notice, 'info')
    if (notice) keepNotice(notice)
    location.reload()
  })
}

/** Loads the script of the notifications, which a browser that wants none does not need. */
async function followNotifications () {
  const { startNotifications } = await import('./notifications.ts')
  startNotifications(socket)
}

function noteHeard () {
  heardAt = serverTime()
}

function setLive (isLive: boolean) {
  if (isLive) noteHeard()
  else if (offline.hidden) sayLost()
  for (const element of document.querySelectorAll(ORDERS)) element.toggleAttribute('inert', !isLive)
  offline.hidden = isLive
  document.documentElement.dataset.live = isLive ? 'on' : 'off'
  showTrouble(!isLive)
}

function sayBlocked (isAnswering: boolean) {
  blocked = isAnswering ? blocked + 1 : 0
  byId('offline-why').hidden = blocked >= BLOCKED_AFTER
  byId('blocked-why').hidden = blocked < BLOCKED_AFTER
}

function sayLost () {
  findElement('#offline-since', HTMLTimeElement).dateTime = new Date(heardAt).toISOString()
  localiseTimes(offline)
}

/** A hidden page shows only its title and icon, which come with every path. So it watches a path without a page. */
function watchedPath () {
  return document.hidden ? '/hidden' : currentPath()
}

function currentPath () {
  return location.pathname + location.search
}

function showUpdate ({ now, url, fragments, figures, vitals }: Update) {
  setServerTime(now)
  noteHeard()
  // This update was sent before the filters of the page changed.
  if (url !== watchedPath()) return
  const glide = fragments.length === 0 || hasCalmMotion.matches ? () => {} : glideFromHere()
  for (const fragment of fragments) showFragment(fragment)
  showFigures(figures)
  if (vitals) document.dispatchEvent(new CustomEvent('vitals', { detail: vitals }))
  if (fragments.length === 0) return
  updateTicks()
  localiseTimes()
  showTrouble(false)
  glide()
}

function showFragment ({ id, parts, hash }: SentFragment) {
  const target = document.getElementById(id)
  if (!target) return
  const text = completeParts(parts)
  // This page lacks a row that the server left out, so it asks for the whole part.
  if (text === null) {
    delete shown[id]
    return watchPage()
  }
  const known = new Set(Array.from(target.querySelectorAll('[data-flash]'), (element) => element.id))
  const restoreFocus = keepFocus(target)
  htmx.swap({ text, target, swap: 'outerMorph' })
  restoreFocus()
  shown[id] = hash
  flashRows(Array.from(document.querySelectorAll(`#${id} [data-flash]`)).filter((element) => !known.has(element.id)))
}

function flashRows (elements: Element[]) {
  if (hasCalmMotion.matches || elements.length > MAX_FLASHES) return
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--flash')
  for (const element of elements)
    element.animate([{ backgroundColor: colour }, { backgroundColor: 'transparent' }], { duration: 1600,
      easing: 'ease-out' })
}

/** Searches for words that were typed before htmx listened. */
function searchForEarlyWords () {
  const fields: NodeListOf<HTMLInputElement> = document.querySelectorAll('form[role=search] input[type=search]')
  for (const field of fields) {
    if (field.value !== field.defaultValue) field.dispatchEvent(new Event('input', { bubbles: true }))
  }
}

/** Asks, as a refused WebSocket does not say why. */
async function statusOfApi () {
  const response = await fetch(`${BASE}/api/v1/${IS_HOST ? 'host' : 'status'}`, { method: 'HEAD', redirect: 'manual' })
    .catch(() => null)
  return response?.status
}

/** The session has ended. */
function leave (why: string | null = null) {
  // It would be refused again and again.
  socket.disconnect()
  setLive(false)
  offline.dataset.ended = ''
  if (!isByProxy) signInAgain(why)
}

function comeBack () {
  delete offline.dataset.ended
  socket.disconnect().connect()
}

/**
 * The title and the icon of the tab: the number of problems, or that the connection is lost.
 * `isLost`: whether the master does not answer
 */
function showTrouble (isLost: boolean) {
  const icon = document.getElementById('trouble')
  if (!icon) return
  const { count, shown, lost } = icon.dataset
  const href = HOME + (isLost ? lost : shown)
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href)
  const title = isLost ? `(no connection) ${ownTitle}` : Number(count) > 0 ? `(${count}) ${ownTitle}` : ownTitle
  if (document.title !== title) document.title = title
}

/**
 * Loads the script of a part of the page once somebody has scrolled to it.
 *
 * <section data-script="/assets/charts.js?v=…">
 */
function startLateScripts () {
  const parts: NodeListOf<HTMLElement> = document.querySelectorAll('[data-script]')
  for (const part of parts) seen.observe(part)
}

async function loadScript (part: HTMLElement) {
  seen.unobserve(part)
  try {
    await import(String(part.dataset.script))
  } catch {
    setTimeout(() => seen.observe(part), AGAIN_MS)
  }
}
