/**
 * How much a line of the workers' output matters, by what it says itself. The search in the files and the browser use
 * the same, so a line that comes live is shown where a search would find it.
 */
export type Level = 'error' | 'warn' | 'info' | 'debug' | 'none'

/** The most important first. */
export const LEVELS: readonly Level[] = Object.freeze(['error', 'warn', 'info', 'debug', 'none'])

/** pino and bunyan write numbers. */
const NUMBERS: Readonly<Record<string, string>> = Object.freeze({ 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn',
  50: 'error', 60: 'fatal' })
const NAMES: Readonly<Record<string, Level>> = Object.freeze({ fatal: 'error', panic: 'error', emergency: 'error',
  emerg: 'error', alert: 'error', critical: 'error', crit: 'error', error: 'error', err: 'error', warning: 'warn',
  warn: 'warn', notice: 'info', information: 'info', info: 'info', http: 'info', verbose: 'debug', debug: 'debug',
  trace: 'debug', silly: 'debug' })

/** A level stands at the beginning; what it costs to find must not depend on who wrote the line. */
const HEAD_CHARS = 400
const COLOURS = /\u001b\[[\d;]{0,20}m/g
/** The names that seldom stand in a line for something else. */
const WORDS = 'fatal|panic|emerg|alert|critical|crit|error|err|warning|warn|notice|info|verbose|debug|trace'
/** `"level":50`, `level=warn`. */
const FIELD = /"(?:level|severity|lvl)"\s?:\s?"?(\w{1,12})|\b(?:level|severity|lvl)="?([a-z]{1,12})/i
/** `ERROR` counts as a word; in lower case only `[error]` and `error:` do. */
const UPPER = new RegExp(String.raw`(?:^|[\s|[(<])(${WORDS.toUpperCase()})(?=[\s\])>:|]|$)`)
const LOWER = new RegExp(String.raw`(?:^|\s)(?:[[(<](${WORDS})[\])>]|(${WORDS}):)`, 'i')
const THROWN = /^(?:Uncaught )?\w{0,40}(?:Error|Exception)\b/
/** On stderr, where many programs write all that they log, a word is enough, and a frame belongs to its error. */
const SAYS_ERROR =
  /\b(?:[Ee]rror|ERROR|[Ee]xception|[Ff]atal|FATAL|[Pp]anic|PANIC|Traceback)\b|\w(?:Error|Exception)\b|^\s+(?:at \S|File ")/

/** `text`: a line as it was written */
export function levelOf (text: string, stream: 'stdout' | 'stderr'): Level {
  const head = text.slice(0, HEAD_CHARS).replace(COLOURS, '')
  for (const pattern of [FIELD, UPPER, LOWER]) {
    const [, name, other] = pattern.exec(head) ?? []
    const level = levelNamed(name ?? other ?? '')
    if (level) return level
  }
  return (stream === 'stderr' ? SAYS_ERROR : THROWN).test(head) ? 'error' : 'none'
}

/** Null: no logger calls a level so */
export function levelNamed (name: string): Level | null {
  const known = levelName(name)
  return Object.hasOwn(NAMES, known) ? NAMES[known] : null
}

/** `text`: a name or a number */
export function levelName (text: string): string {
  return Object.hasOwn(NUMBERS, text) ? NUMBERS[text] : text.toLowerCase()
}
