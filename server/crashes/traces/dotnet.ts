import { foundIn, onWhile, toPlace, type Reader } from './trace.ts'

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
    places: foundIn(trace, FRAME).map(([, ...at]) => toPlace(at[1] !== undefined && !OF_OTHERS.test(at[0]), at)),
    causes: foundIn(trace, CAUSE).map(([, errorName, errorMessage = '']) => ({ errorName, errorMessage })) }
}
