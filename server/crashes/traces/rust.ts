import { messageOf, onWhile, toPlace, type Place, type Reader } from './trace.ts'

const HEAD = /^thread '[^']*'(?: \(\d+\))? panicked at (.*)$/
/** Before Rust 1.73. */
const OLD = /^'(.*)', ([^\s']+):(\d+):(\d+)$/
const PLACE = /^(.+):(\d+):(\d+):?$/
const AFTER_MESSAGE = /^(?:stack backtrace:|note: )/
const OF_A_TRACE = /^(?:stack backtrace:|note: |\s+\d+: |\s+at )/
const FUNCTION = /^\s+\d+: (?:0x[0-9a-f]+ - )?(.+)$/
const FILE = /^\s+at (?:\.\/)?(.+):(\d+):(\d+)$/
const OF_OTHERS = /^\/rustc\/|\/\.cargo\/(?:registry|git)\/|\/lib\/rustlib\//

export const readRust: Reader = (lines) => {
  const from = lines.findLastIndex((line) => HEAD.test(line))
  if (from < 0) return null
  const rest = HEAD.exec(lines[from])?.[1] ?? ''
  const [, oldMessage, ...oldPlace] = OLD.exec(rest) ?? []
  const { text, to: top } = oldMessage === undefined
    ? messageOf(lines[from + 1] ?? '', lines, from + 2, AFTER_MESSAGE)
    : { text: oldMessage, to: from + 1 }
  const [file, line, column] = oldMessage === undefined ? (PLACE.exec(rest) ?? []).slice(1) : oldPlace
  const to = onWhile(lines, top, OF_A_TRACE)
  const places = placesOf(lines.slice(top, to))
  const where = file === undefined ? [] : [toPlace(!OF_OTHERS.test(file), [null, file, line, column])]
  // The panic of a thread comes before that of who waits for it.
  const before = lines.slice(from - 2, from).some((each) => OF_A_TRACE.test(each))
    ? readRust(lines.slice(0, from))
    : null
  return { kind: 'panic', errorName: 'panic', errorMessage: text, from: before?.from ?? from, to,
    places: places.some(({ isOwn }) => isOwn) ? places : [...where, ...places],
    causes: before ? [{ errorName: 'panic', errorMessage: before.errorMessage }, ...before.causes] : [] }
}

function placesOf (lines: string[]): Place[] {
  return lines.flatMap((line, index) => {
    const name = FUNCTION.exec(line)?.[1]
    if (name === undefined) return []
    const [, ...at] = FILE.exec(lines[index + 1] ?? '') ?? []
    return [toPlace(at.length > 0 && !OF_OTHERS.test(at[0]), [name, ...at])]
  })
}
