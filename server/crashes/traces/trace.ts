/** What the runtime of a language writes at the end of a program: its error, and what has called what. */
export type Trace = {
  kind: 'exception' | 'unhandled-rejection' | 'panic' | 'signal',
  errorName: string,
  errorMessage: string,
  /** the index of its first line */
  from: number,
  /** of the line after its last one */
  to: number,
  /** where what has called what ends, if more comes behind it */
  stackTo?: number,
  /** innermost first; null: they are written as V8 does */
  places: Place[] | null,
  /** outermost first */
  causes: Cause[]
}
/** `isOwn`: of the app */
export type Place = { function: string | null, file: string | null, line: number | null, column: number | null,
  isOwn: boolean }
export type Cause = { errorName: string, errorMessage: string }
/** of the last trace in these lines, without colours */
export type Reader = (lines: string[]) => Trace | null

const MAX_MESSAGE_LINES = 20
/** How logs begin their lines: a level, a date, a bracket. */
const OF_A_LOG = /^(?:\[|\{|\d{4}[-/]\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)/

/** A message may have several lines. `from`: the index of the second one; `end`: what comes after it. */
export function messageOf (first: string, lines: string[], from: number,
  end: RegExp = /^$/): { text: string, to: number }
{
  let to = from
  while (to < lines.length && to - from < MAX_MESSAGE_LINES && lines[to].trim() !== '' && !end.test(lines[to]) &&
    !OF_A_LOG.test(lines[to])) to++
  return { text: [first, ...lines.slice(from, to)].join('\n').trim(), to }
}

/** What a pattern has found in a line. Returns null for what is not said. */
export function toPlace (isOwn: boolean, [name, file, line, column]: readonly (string | null | undefined)[]): Place {
  return { function: name ?? null, file: file ?? null, line: line ? Number(line) : null,
    column: column ? Number(column) : null, isOwn }
}

/** @returns what the pattern finds in each of the lines that are like it */
export function foundIn (lines: string[], pattern: RegExp): RegExpExecArray[] {
  return lines.map((line) => pattern.exec(line)).filter((found) => found !== null)
}

/** @returns the first of the neighbours before it that are like this */
export function backWhile (lines: string[], index: number, pattern: RegExp): number {
  while (index > 0 && pattern.test(lines[index - 1])) index--
  return index
}

/** @returns the first from there that is not like this */
export function onWhile (lines: string[], index: number, pattern: RegExp): number {
  while (index < lines.length && pattern.test(lines[index])) index++
  return index
}
