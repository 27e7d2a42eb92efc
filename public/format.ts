/**
 * Formats numbers for people. Used by the server for the first paint and by the browser for what ticks, so that both
 * agree.
 */

/** @returns two units at most, of ten days and more one: `12 s`, `3 min 12 s`, `2 h 05 min`, `3 d 04 h`, `84 d` */
export function formatDuration (ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–'
  if (ms < 0) return '0 s'
  const seconds = Math.floor(ms / 1000)
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86400)]
  if (days >= 10) return `${days} d`
  if (days > 0) return `${days} d ${padNumber(hours % 24)} h`
  if (hours > 0) return `${hours} h ${padNumber(minutes % 60)} min`
  if (minutes > 0) return `${minutes} min ${padNumber(seconds % 60)} s`
  return `${seconds} s`
}

/** @returns of what is over: `340 ms`, `1.2 s`, `5 min`, `3 min 12 s` */
export function formatExactDuration (ms: number | null | undefined): string {
  if (typeof ms !== 'number' || !(ms >= 0 && ms < 10_000)) return formatDuration(ms).replace(/ 00 \w+$/, '')
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** `ms`: since it happened. Returns one unit: `now`, `12 s ago`, `3 min ago`, `2 h ago`, `3 d ago`. */
export function formatAgo (ms: number): string {
  if (ms < 1000) return 'now'
  return `${formatDuration(ms).split(' ', 2).join(' ')} ago`
}

/** Texts that change as time passes. `ms`: since their moment, negative before it. */
export const TICKS = Object.freeze({ since: formatDuration, until: (ms: number) => formatDuration(-ms),
  in: (ms: number) => ms > -1000 ? 'now' : `in ${formatDuration(-ms)}`, ago: formatAgo })

export function formatCommit (commit: string): string {
  return commit.slice(0, 10)
}

/** `name`: with which it may begin @returns as a sentence begins; a name and that of a release stay as they are */
export function capitalised (text: string, name: string = ''): string {
  if (/^r\d/.test(text) || (name !== '' && text.startsWith(`${name} `))) return text
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const OPTION = / \(option ([a-z]+\.[^()]*)\)/g

/** @returns as pages say it: without the names of options, which the page that is about it has beside */
export function withoutOptions (text: string): string {
  return text.replace(OPTION, '')
}

/** @returns what it takes out: `watchdog.timeoutMs: 10 s`; '' where it names none */
export function optionsIn (text: string | null): string {
  return Array.from((text ?? '').matchAll(OPTION),
    ([, option]) =>
      option.replace(/(?<=(Ms|Bytes): )\d+$/, (number, unit) =>
        (unit === 'Ms' ? formatExactDuration : formatBytes)(Number(number)))).join(', ')
}

/** @returns `64.0 MB`, `1.25 GB` */
export function formatBytes (bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return '–'
  const [kb, mb, gb] = [bytes / 1024, bytes / 1024 ** 2, bytes / 1024 ** 3]
  if (gb >= 1) return `${gb.toFixed(2)} GB`
  if (mb >= 100) return `${Math.round(mb)} MB`
  if (mb >= 1) return `${mb.toFixed(1)} MB`
  return `${Math.round(kb)} KB`
}

/** @returns `12,345`: digits in groups, the same on the server and in every browser */
export function formatCount (n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** @returns `0`, `12.5`, `1,250` */
export function formatRate (perSecond: number | null | undefined): string {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return '–'
  if (perSecond >= 100) return Math.round(perSecond).toLocaleString('en-US')
  return String(Math.round(perSecond * 10) / 10)
}

/** @returns `0.45 ms`, `12.5 ms`, `120 ms`, `2.5 s` */
export function formatLatency (ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–'
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  return `${Number(ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2))} ms`
}

/** @returns `12.5%` */
export function formatPercent (percent: number | null | undefined): string {
  if (percent === null || percent === undefined || !Number.isFinite(percent)) return '–'
  return `${percent >= 100 ? Math.round(percent) : percent.toFixed(1)}%`
}

/** What has asked for the Node of an app, by what `release.node.by` says. */
const ASKS_FOR_NODE: Readonly<Record<string, string>> = { option: 'by the option node',
  volta: 'by volta in package.json', command: 'by which the command was typed', clusterdeck: 'that of clusterdeck' }

/** `node`: of an app */
export function formatNode (
  { version, file, by, instead }: { version: string, file: string, by: string, instead?: string }
) {
  return [version, file, ASKS_FOR_NODE[by] ?? `by ${by}`, ...instead === undefined ? [] : [instead]].join(', ')
}

/** @returns how connections reach the workers, as "shared, even" */
export function formatDispatch (
  { dispatch, stickyBy = null, isEven, app: { ownSockets } = { ownSockets: null } }: { dispatch: string,
    stickyBy?: string | null, isEven: boolean | null, app?: { ownSockets: string | null } }
): string {
  if (ownSockets !== null) return `none: only one worker can have the program's sockets here (${ownSockets})`
  if (stickyBy !== null) return `${dispatch}, by ${stickyBy}`
  if (isEven === null) return dispatch
  return `${dispatch}, ${isEven ? 'even' : 'uneven: that takes Linux and the optional package koffi'}`
}

/** @returns `512 MB and 1.5 CPUs for each worker`; empty: there are none */
export function formatLimits (
  { memoryBytes, cpus, problem }: { memoryBytes: number, cpus: number, problem: string | null }
): string {
  const parts = [...memoryBytes > 0 ? [formatBytes(memoryBytes)] : [],
    ...cpus > 0 ? [`${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'}`] : []]
  return parts.length === 0
    ? ''
    : `${parts.join(' and ')} for each worker${problem === null ? '' : `, not kept here: ${problem}`}`
}

/** `names`: all, or at least the first five; `total`: how many there are. Returns `a, b, c, d, e and 3 more`. */
export function formatNames (names: readonly string[], total: number = names.length): string {
  const named = names.slice(0, 5)
  return `${named.join(', ')}${total > named.length ? ` and ${total - named.length} more` : ''}`
}

/** `timeZone`: the viewer's by default. Returns `20 Nov 21:04:09`, long: `Thu 20 Nov 2025, 21:04:09.123`. */
export function formatTime (iso: string,
  { timeZone, isLong = false }: { timeZone?: string, isLong?: boolean } = {}): string
{
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return String(iso)
  const part = Object.fromEntries(clockOf(timeZone).formatToParts(date).map(({ type, value }) => [type, value]))
  const time = `${part.hour}:${part.minute}:${part.second}`
  if (!isLong) return `${part.day} ${part.month} ${time}`
  return `${part.weekday} ${part.day} ${part.month} ${part.year}, ${time}.${
    String(date.getUTCMilliseconds()).padStart(3, '0')
  }`
}

/** a formatter costs far more to make than to use */
const clocks: Map<string | undefined, Intl.DateTimeFormat> = new Map()

function clockOf (timeZone: string | undefined) {
  const known = clocks.get(timeZone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-GB', { timeZone, weekday: 'short', day: '2-digit', month: 'short',
    year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
  clocks.set(timeZone, made)
  return made
}

function padNumber (value: number) {
  return String(value).padStart(2, '0')
}

/** Why of two releases neither is called worse. Null: both ran long enough, and answered enough */
export function formatUnsure (
  unsure: readonly { release: string, ranMs: number, requests: number | null }[]
): string | null {
  const texts = unsure.map(({ release, ranMs, requests }) =>
    ranMs === 0
      ? `${release} has never served alone`
      : `${release} ran only ${formatDuration(ranMs)}${requests === null ? '' : `, with ${requests} requests`}`
  )
  return texts.length === 0 ? null : `too little to call either of them worse: ${texts.join('; ')}`
}
