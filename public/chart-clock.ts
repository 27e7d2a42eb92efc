import { formatTime } from './format.ts'

/** Texts for the times of the charts. `timeZone`: as Intl has it; undefined: the viewer's. */
type Zone = { timeZone?: string }

const DAY_S = 24 * 60 * 60
const MINUTE_S = 60

/** `seconds`: of an axis; `stepS`: between them. Returns `14:05`, where a day begins `22 Nov`. */
export function axisTexts (seconds: readonly number[], stepS: number, zone: Zone): string[] {
  return seconds.map((second) => {
    const { date, clock, minutes } = partsOf(second, zone)
    if (stepS >= DAY_S || clock === '00:00:00') return date
    return stepS < MINUTE_S ? clock : minutes
  })
}

/** `stepS`: what the moment stands for. Returns `14:05:10`, on another day `22 Nov 14:05:10`. */
export function momentText (second: number, { stepS, nowS, timeZone }: Zone & { stepS: number, nowS: number }): string {
  const { date, clock, minutes } = partsOf(second, { timeZone })
  const text = stepS < MINUTE_S ? clock : minutes
  return date === partsOf(nowS, { timeZone }).date ? text : `${date} ${text}`
}

/** @returns `22 Nov 14:05:10 – 14:05:40` */
export function spanText (firstS: number, lastS: number, { nowS, timeZone }: Zone & { nowS: number }): string {
  const [first, last] = [firstS, lastS].map((second) => partsOf(second, { timeZone }))
  const begin = momentText(firstS, { stepS: 1, nowS, timeZone })
  if (first.date === last.date) return first.clock === last.clock ? begin : `${begin} – ${last.clock}`
  return `${first.date} ${first.clock} – ${last.date} ${last.clock}`
}

function partsOf (second: number, { timeZone }: Zone) {
  const [day, month, clock] = formatTime(new Date(second * 1000).toISOString(), { timeZone }).split(' ')
  return { date: `${Number(day)} ${month}`, clock, minutes: clock.slice(0, 5) }
}
