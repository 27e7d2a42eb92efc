// Says a cron expression as people do: '0 3 * * *' is every day at 03:00, '30 8 * * 1-5' is Monday to Friday at 08:30.

const DAYS = Object.freeze(['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'])
const SHORT_DAYS = DAYS.map((day) => day.slice(0, 3).toUpperCase())
const MAX_TIMES = 4

/** `values`: in their order, none is given twice */
type Field = { step: number } | { values: number[] }

/** Null: that would take too many words */
export function cronWords (text: string): string | null {
  const fields = text.trim().split(/\s+/)
  const [second, minute, hour, day, month, weekday] = fields.length === 5 ? ['0', ...fields] : fields
  // Days of the month and of the week together mean either of them.
  if (second !== '0' || month !== '*' || (day !== '*' && weekday !== '*')) return null
  const days = daysText(day, weekday)
  const times = timesText(minute, hour)
  if (days === null || times === null) return null
  if (times.isOften) return days === 'every day' ? times.text : `${times.text}, ${days}`
  return `${days} at ${times.text}`
}

function timesText (minute: string, hour: string): { text: string, isOften: boolean } | null {
  const [minutes, hours] = [fieldOf(minute, 60), fieldOf(hour, 24)]
  if (!minutes || !hours) return null
  if ('step' in minutes)
    return 'step' in hours && hours.step === 1 ? { text: everyText(minutes.step, 'minute'), isOften: true } : null
  if (minutes.values.length !== 1 && 'step' in hours) return null
  if ('step' in hours)
    return {
      text: `${everyText(hours.step, 'hour')}${minutes.values[0] === 0 ? '' : ` at minute ${minutes.values[0]}`}`,
      isOften: true
    }
  const times = hours.values.flatMap((each) => minutes.values.map((past) => `${two(each)}:${two(past)}`))
  return times.length > MAX_TIMES ? null : { text: listed(times), isOften: false }
}

function daysText (day: string, weekday: string) {
  if (day === '*' && weekday === '*') return 'every day'
  if (day !== '*') return /^([1-9]|[12]\d|3[01])$/.test(day) ? `on day ${day} of each month` : null
  const [, first, last] = /^(\w+)-(\w+)$/.exec(weekday) ?? []
  if (first !== undefined) return dayName(first) && dayName(last) ? `${dayName(first)} to ${dayName(last)}` : null
  const names = weekday.split(',').map(dayName)
  return names.includes(null) ? null : `every ${listed(names as string[])}`
}

function dayName (text: string): string | null {
  if (/^[0-7]$/.test(text)) return DAYS[Number(text) % 7]
  return DAYS[SHORT_DAYS.indexOf(text.toUpperCase())] ?? null
}

/** `size`: of its range, from 0 */
function fieldOf (text: string, size: number): Field | null {
  if (text === '*') return { step: 1 }
  const [, step] = /^\*\/([1-9]\d?)$/.exec(text) ?? []
  // Steps that do not fit into the range are uneven: every 7 minutes ends with one of 4.
  if (step !== undefined) return size % Number(step) === 0 ? { step: Number(step) } : null
  const values = text.split(',').map((each) => (/^\d{1,2}$/.test(each) ? Number(each) : NaN))
  return values.every((value) => value < size)
    ? { values: [...new Set(values)].sort((one, other) => one - other) }
    : null
}

function everyText (step: number, unit: string) {
  return step === 1 ? `every ${unit}` : `every ${step} ${unit}s`
}

function listed (texts: string[]) {
  return texts.length === 1 ? texts[0] : `${texts.slice(0, -1).join(', ')} and ${texts[texts.length - 1]}`
}

function two (value: number) {
  return String(value).padStart(2, '0')
}
