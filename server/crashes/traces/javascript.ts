import { backWhile, messageOf, onWhile, type Cause, type Reader, type Trace } from './trace.ts'

const FRAME =
  /^\s+at (?:.+ \()?(?:[^()\s].*):\d+:\d+\)?(?: \{)?$|^\s+at (?:native|<anonymous>|.+ \((?:native|<anonymous>)[^)]*\))/
const ERROR = /^(?:([A-Za-z_$][\w$.]*)(?: \[\w+\])?: )?(.*)$/
const CARET = /^\s*[\^~]+\s*$/
const CODE_LINE = /^\s*\d+ \| /
/** Bun shows what an error has beside its message. */
const PROPERTY = /^\s+\w+: .*,?$|^$/
const OF_A_PARSER = /^ {4}at /
const OF_BUN = /^Bun v\d/
const OF_NODE = /^Node\.js v\d/
const OF_DENO = /^error: (?:Uncaught )?(\(in promise\) )?(.*)$/
const AFTER_MESSAGE = /^\s+(?:at |\|)|^Caused by: /

/** What Bun, Deno, or Node behind a shell says. */
export const readJavaScript: Reader = (lines) => {
  const bun = lines.findLastIndex((line) => OF_BUN.test(line))
  if (bun >= 0) return readBun(lines, bun)
  return readDeno(lines) ?? readNode(lines)
}

/**
 * What an error was caused by stands behind it, as what comes after an error that was only logged: the last one counts.
 */
function readBun (lines: string[], end: number): Trace | null {
  let head = headBefore(lines, end)
  // Of a file that cannot be parsed the first error counts; what was written before it may have been cut off.
  for (let at = head; at >= 0 && OF_A_PARSER.test(lines[at + 1] ?? ''); at = headBefore(lines, blockStart(lines, at)))
    head = at
  return head < 0
    ? null
    : { kind: 'exception', ...toError(lines, head), from: head, to: end + 1, places: null, causes: [] }
}

/** @returns the line that names the error; -1: none */
function headBefore (lines: string[], end: number): number {
  const last = backWhile(lines, end, /^$/)
  const frames = backWhile(lines, last, FRAME)
  const caret = lines.slice(0, frames).findLastIndex((line) => CARET.test(line))
  if (caret >= 0 && frames - caret < 25 && CODE_LINE.test(lines[caret - 1] ?? '')) return caret + 1
  const properties = backWhile(lines, frames, PROPERTY)
  return properties - 1
}

function blockStart (lines: string[], head: number) {
  return CARET.test(lines[head - 1] ?? '') ? backWhile(lines, head - 1, CODE_LINE) : head
}

function toError (lines: string[], head: number): Cause {
  const [, name = 'Error', first] = ERROR.exec(lines[head]) ?? []
  const { text } = messageOf(first ?? '', lines, head + 1, /^\s+at |^ syscall: /)
  return { errorName: name === 'error' ? 'Error' : name, errorMessage: text }
}

function readDeno (lines: Parameters<Reader>[0]): ReturnType<Reader> {
  const from = lines.findLastIndex((line) => OF_DENO.test(line))
  if (from < 0) return null
  const [, inPromise, said] = OF_DENO.exec(lines[from]) ?? []
  const [, errorName = 'Error', first] = ERROR.exec(said) ?? []
  const { text, to } = messageOf(first ?? '', lines, from + 1, AFTER_MESSAGE)
  const end = onWhile(lines, to, /^\s+(?:at |\||\d+: )|^Caused by: |^\d+ \||^$|^Stack backtrace:/)
  return { kind: inPromise ? 'unhandled-rejection' : 'exception', errorName, errorMessage: withoutSource(text), from,
    to: end, stackTo: onWhile(lines, to, /^\s+at /), places: null,
    causes: lines.slice(to, end).filter((line) => line.startsWith('Caused by: ')).map((line) => {
      const [, name = 'Error', message] = ERROR.exec(line.slice('Caused by: '.length)) ?? []
      return { errorName: name, errorMessage: message ?? '' }
    }) }
}

/** Behind the message are the line of the source and a mark under it. */
function withoutSource (text: string) {
  const lines = text.split('\n')
  const caret = lines.findIndex((line) => CARET.test(line))
  return (caret < 0 ? lines : lines.slice(0, Math.max(1, caret - 1))).join('\n')
}

/** What Node says, and what an app has logged of an error. */
function readNode (lines: Parameters<Reader>[0]): ReturnType<Reader> {
  const last = lines.findLastIndex((line) => /^ {4}at /.test(line) && FRAME.test(line))
  if (last < 0) return null
  const top = backWhile(lines, last, /^\s+(?:at |\.\.\. \d+ lines matching )/)
  const node = lines.findLastIndex((line) => OF_NODE.test(line))
  const caret = lines.slice(0, top).findLastIndex((line) => CARET.test(line))
  const head = node > last && caret >= 0 && top - caret < 25 ? onWhile(lines, caret + 1, /^$/) : top - 1
  const [, errorName, first] = ERROR.exec(lines[head] ?? '') ?? []
  if (errorName === undefined) return null
  const errorMessage = [first, ...lines.slice(head + 1, top)].join('\n')
  // What the error has beside its message stands behind its stack.
  const properties = lines[last].endsWith('{') ? onWhile(lines, last + 1, /^(?: |}$)/) - 1 : last
  return { kind: 'exception', errorName, errorMessage, from: head, to: Math.max(properties, node) + 1,
    stackTo: last + 1, places: null, causes: [] }
}
