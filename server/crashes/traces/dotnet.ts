import { onWhile, type Reader } from './trace.ts'

const HEAD = /^Unhandled exception\. ([\w.`]+)(?:: (.*))?$/
const FRAME = /^ {3}at ([^(]+)\(.*\)(?: in (.+):line (\d+))?$/
const CAUSE = /^ ---> ([\w.`]+)(?:: (.*))?$/
const OF_A_TRACE = /^ {3}(?:at |--- End )| ---> |^--- End /
const OF_OTHERS = /^(?:System|Microsoft)\./

export const readDotnet: Reader = (lines) => {
  const from = lines.findLastIndex((line) => HEAD.test(line))
  if (from < 0) return null
  const [, errorName, errorMessage = ''] = HEAD.exec(lines[from]) ?? []
  const to = onWhile(lines, from + 1, OF_A_TRACE)
  const trace = lines.slice(from + 1, to)
  return { kind: 'exception', errorName, errorMessage, from, to,
    places: trace.map((line) => FRAME.exec(line)).filter((found) => found !== null).map(([, name, file, line]) => ({
      function: name,
      file: file ?? null,
      line: line === undefined ? null : Number(line),
      column: null,
      isOwn: file !== undefined && !OF_OTHERS.test(name)
    })),
    causes: trace.map((line) => CAUSE.exec(line)).filter((found) => found !== null).map(([, name, message = '']) => ({
      errorName: name,
      errorMessage: message
    })) }
}
