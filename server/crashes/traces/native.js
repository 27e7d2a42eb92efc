import { onWhile } from './trace.js'

const ASSERTION = /^(?:[^\s:]+: )?([^\s:]+):(\d+): (?:(.+): )?Assertion [`'](.*)' failed\.$/
const THROWN = /^terminate called (?:after throwing an instance of '(.*)'|.*)$/
const WHAT = /^\s+what\(\): +(.*)$/
const HEAP = /^(?:\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*: terminated|(?:free|malloc|realloc|munmap_chunk|malloc_consolidate|corrupted|double free)\b.*)$/
const SANITIZER = /^==\d+==ERROR: (\w+Sanitizer): (.*)$/
const SANITIZER_FRAME = /^ +#\d+ 0x[0-9a-f]+ in (\S+)(?: (.+?)(?::(\d+))?(?::(\d+))?)?$/
const OF_JAVA = /^# +(SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=/

/** What the C library, C++, sanitizers and a virtual machine write before a signal ends them. @type {import('./trace.js').Reader} */
export function readNative (lines) {
  const from = lines.findLastIndex((line) => [ASSERTION, THROWN, HEAP, SANITIZER, OF_JAVA].some((pattern) => pattern.test(line)))
  const line = lines[from] ?? ''
  const [, file, row, name = null, claim] = ASSERTION.exec(line) ?? []
  if (file !== undefined) return toTrace(from, from + 1, 'Assertion failed', claim, [{ function: name, file, line: Number(row), column: null, isOwn: true }])
  const [, sanitizer, found] = SANITIZER.exec(line) ?? []
  if (sanitizer !== undefined) return toTrace(from, lines.length, sanitizer, found, sanitizerPlaces(lines, from + 1))
  const [, signal] = OF_JAVA.exec(line) ?? []
  if (signal !== undefined) return toTrace(from, lines.length, signal, 'the Java virtual machine has crashed', [])
  const [thrown, type = 'terminate'] = THROWN.exec(line) ?? []
  if (thrown !== undefined) return toTrace(from, from + 2, type, WHAT.exec(lines[from + 1] ?? '')?.[1] ?? '', [])
  return HEAP.test(line) ? toTrace(from, from + 1, 'abort', line.replace(/^\*\*\* | \*\*\*(?=:)/g, ''), []) : null
}

/** @param {string[]} lines @param {number} from @returns {import('./trace.js').Place[]} */
function sanitizerPlaces (lines, from) {
  return lines.slice(from, onWhile(lines, from, SANITIZER_FRAME)).map((line) => {
    const [, name, file = null, row, column] = SANITIZER_FRAME.exec(line) ?? []
    return { function: name, file, line: row === undefined ? null : Number(row), column: column === undefined ? null : Number(column), isOwn: row !== undefined && !/libsanitizer|^\.\.\//.test(file ?? '') }
  })
}

/** @param {number} from @param {number} to @param {string} errorName @param {string} errorMessage @param {import('./trace.js').Place[]} places @returns {import('./trace.js').Trace} */
function toTrace (from, to, errorName, errorMessage, places) {
  return { kind: 'signal', errorName, errorMessage, from, to, places, causes: [] }
}
