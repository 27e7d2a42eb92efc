import { setText } from './elements.ts'
import { formatTime, TICKS } from './format.ts'
import { timeZone } from './times.ts'

/** Updates times between two messages of the server: uptimes, countdowns, and clocks in the viewer's time zone. */

/** Server time minus ours. */
let offsetMs = 0

/** @returns by the server's clock, ms since the epoch */
export function serverTime (): number {
  return Date.now() + offsetMs
}

/** `now`: the server's clock, ms since the epoch; ours may be wrong by hours */
export function setServerTime (now: number) {
  offsetMs = now - Date.now()
}

export function updateTicks (root: ParentNode = document) {
  const now = serverTime()
  const times: NodeListOf<HTMLTimeElement> = root.querySelectorAll('time[data-tick]')
  for (const time of times) {
    setText(time, TICKS[time.dataset.tick as keyof typeof TICKS](now - Date.parse(time.dateTime)))
  }
}

export function localiseTimes (root: ParentNode = document) {
  const times: NodeListOf<HTMLTimeElement> = root.querySelectorAll('time[data-clock]')
  for (const time of times) {
    setText(time, formatTime(time.dateTime, { timeZone: timeZone(), isLong: time.dataset.clock === 'long' }))
  }
}

/** Updates times each second while the page is live. Without a connection they stop, as they may no longer be true. */
export function startTicking () {
  setServerTime(Number(document.documentElement.dataset.now) || Date.now())
  updateTicks()
  localiseTimes()
  document.addEventListener('clusterdeck:preference', () => localiseTimes())
  setInterval(goOn, 1000)
  document.addEventListener('visibilitychange', goOn)
}

function goOn () {
  if (!document.hidden && document.documentElement.dataset.live !== 'off') updateTicks()
}
