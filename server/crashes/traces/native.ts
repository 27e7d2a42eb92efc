import { foundIn, onWhile, toPlace, type Place, type Reader, type Trace } from './trace.ts'

const ASSERTION = /^(?:[^\s:]+: )?([^\s:]+):(\d+): (?:(.+): )?Assertion [`'](.*)' failed\.$/
const THROWN = /^terminate called (?:after throwing an instance of '(.*)'|.*)$/
const WHAT = /^\s+what\(\): +(.*)$/
const HEAP =
  /^(?:\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*: terminated|(?:free|malloc|realloc|munmap_chunk|malloc_consolidate|corrupted|double free)\b.*)$/
const SANITIZER = /^==\d+==ERROR: (\w+Sanitizer): (.*)$/
const SANITIZER_FRAME = /^ +#\d+ 0x[0-9a-f]+ in (\S+)(?: (.+?)(?::(\d+))?(?::(\d+))?)?$/
const OF_JAVA = /^# +(SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=/

/** What the C library, C++, sanitizers and a virtual machine write before a signal ends them. */
export const readNative: Reader = (lines) => {
  const from = lines.findLastIndex((line) =>
    [ASSERTION, THROWN, HEAP, SANITIZER, OF_JAVA].some((pattern) => pattern.test(line))
  )
  const line = lines[from] ?? ''
  const [, file, row, name, claim] = ASSERTION.exec(line) ?? []
  if (file !== undefined)
    return toTrace(from, from + 1, 'Assertion failed', claim, [toPlace(true, [name, file, row])])
  const [, sanitizer, found] = SANITIZER.exec(line) ?? []
  if (sanitizer !== undefined) return toTrace(from, lines.length, sanitizer, found, sanitizerPlaces(lines, from + 1))
  const [, signal] = OF_JAVA.exec(line) ?? []
  if (signal !== undefined) return toTrace(from, lines.length, signal, 'the Java virtual machine has crashed', [])
  const [thrown, type = 'terminate'] = THROWN.exec(line) ?? []
  if (thrown !== undefined) return toTrace(from, from + 2, type, WHAT.exec(lines[from + 1] ?? '')?.[1] ?? '', [])
  return HEAP.test(line) ? toTrace(from, from + 1, 'abort', line.replace(/^\*\*\* | \*\*\*(?=:)/g, ''), []) : null
}

function sanitizerPlaces (lines: string[], from: number): Place[] {
  return foundIn(lines.slice(from, onWhile(lines, from, SANITIZER_FRAME)), SANITIZER_FRAME).map(([, ...at]) =>
    toPlace(at[2] !== undefined && !/libsanitizer|^\.\.\//.test(at[1] ?? ''), at)
  )
}

function toTrace (from: number, to: number, errorName: string, errorMessage: string, places: Place[]): Trace {
  return { kind: 'signal', errorName, errorMessage, from, to, places, causes: [] }
}
