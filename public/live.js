import { startDialogs } from './dialogs.js'
import { keepNotice, showKeptNotice, showToast } from './toasts.js'
import { localise, setServerTime, startTicking, tick } from './ticks.js'

/**
 * Keeps the page as it is on the server: fragments come over socket.io and are morphed in by id.
 * @typedef {{ id: string, html: string }} Fragment
 */

const { htmx, io } = /** @type {any} */ (window)
const offline = /** @type {HTMLElement} */ (document.getElementById('offline'))
const hasCalmMotion = matchMedia('(prefers-reduced-motion: reduce)')

startTicking()
startDialogs()
showKeptNotice()

const socket = io({ transports: ['websocket', 'polling'], tryAllTransports: true, reconnectionDelay: 300, reconnectionDelayMax: 2000 })
socket.on('connect', watch)
socket.on('fragments', show)
socket.on('signed-out', toSignIn)
// Who signs out here is led on by the form.
document.querySelector('form[action="/sign-out"]')?.addEventListener('submit', () => socket.off('signed-out'))
socket.on('disconnect', () => setLive(false))
socket.on('connect_error', async () => {
  setLive(false)
  if (await isSignedOut()) toSignIn()
})
// The filters of the history change the address without a new page.
document.addEventListener('htmx:after:swap', () => {
  tick()
  localise()
  if (location.href !== watched) watch()
})

/** @type {string | undefined} the address that the server knows of */
let watched

/** After a connection was lost, too: the server answers with everything on this page that may have changed. */
function watch () {
  watched = location.href
  socket.emit('watch', here(), (/** @type {{ version: string, software: string }} */ { version, software }) => {
    setLive(true)
    const { assets, software: known } = document.documentElement.dataset
    const notice = software === known ? null : `The master was upgraded to ${software}.`
    document.documentElement.dataset.software = software
    if (version === assets) return notice && showToast(notice, 'info')
    if (notice) keepNotice(notice)
    location.reload()
  })
}

function setLive (/** @type {boolean} */ isLive) {
  offline.hidden = isLive
  document.documentElement.dataset.live = isLive ? 'on' : 'off'
}

/** What the server calls this page. */
function here () {
  return location.pathname + location.search
}

/** @param {{ now: number, url: string, fragments: Fragment[] }} update */
function show ({ now, url, fragments }) {
  setServerTime(now)
  // It was sent before the filters of this page had changed.
  if (url !== here()) return
  for (const { id, html } of fragments) {
    const target = document.getElementById(id)
    if (!target) continue
    const known = new Set(Array.from(target.querySelectorAll('[data-flash]'), (element) => element.id))
    htmx.swap({ text: html, target, swap: 'outerMorph' })
    for (const element of document.querySelectorAll(`#${id} [data-flash]`)) {
      if (!known.has(element.id)) flash(element)
    }
  }
  tick()
  localise()
}

/** Draws the eye to what is new. */
function flash (/** @type {Element} */ element) {
  if (hasCalmMotion.matches) return
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--flash')
  element.animate([{ backgroundColor: colour }, { backgroundColor: 'transparent' }], { duration: 1600, easing: 'ease-out' })
}

/** A refused WebSocket does not say why, so ask. */
async function isSignedOut () {
  const response = await fetch('/api/v1/status', { method: 'HEAD' }).catch(() => null)
  return response?.status === 401
}

function toSignIn () {
  location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`)
}
