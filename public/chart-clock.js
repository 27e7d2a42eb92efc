import { formatTime } from './format.js'

/**
 * Texts for the times of the charts. `timeZone`: as Intl has it; undefined: the viewer's.
 * @typedef {{ timeZone?: string }} Zone
 */

const DAY_S = 24 * 60 * 60
const MINUTE_S = 60

/**
 * @param {readonly number[]} seconds of an axis @param {number} stepS between them @param {Zone} zone
 * @returns {string[]} `14:05`, where a day begins `22 Nov`
 */
export function axisTexts (seconds, stepS, zone) {
  return seconds.map((second) => {
    const { date, clock, minutes } = partsOf(second, zone)
    if (stepS >= DAY_S || clock === '00:00:00') return date
    return stepS < MINUTE_S ? clock : minutes
  })
}

/**
 * @param {number} second
 * @param {Zone & { stepS: number, nowS: number }} options `stepS`: what the moment stands for
 * @returns {string} `14:05:10`, on another day `22 Nov 14:05:10`
 */
export function momentText (second, { stepS, nowS, timeZone }) {
  const { date, clock, minutes } = partsOf(second, { timeZone })
  const text = stepS < MINUTE_S ? clock : minutes
  return date === partsOf(nowS, { timeZone }).date ? text : `${date} ${text}`
}

/** @param {number} firstS @param {number} lastS @param {Zone & { nowS: number }} options @returns {string} `22 Nov 14:05:10 – 14:05:40` */
export function spanText (firstS, lastS, { nowS, timeZone }) {
  const [first, last] = [firstS, lastS].map((second) => partsOf(second, { timeZone }))
  const begin = momentText(firstS, { stepS: 1, nowS, timeZone })
  if (first.date === last.date) return first.clock === last.clock ? begin : `${begin} – ${last.clock}`
  return `${first.date} ${first.clock} – ${last.date} ${last.clock}`
}

/** @param {number} second @param {Zone} zone */
function partsOf (second, { timeZone }) {
  const [day, month, clock] = formatTime(new Date(second * 1000).toISOString(), { timeZone }).split(' ')
  return { date: `${Number(day)} ${month}`, clock, minutes: clock.slice(0, 5) }
}
