import { foundIn, onWhile, toPlace, type Place, type Reader } from './trace.ts'

const HEAD = /^(?:\[[^\]]*\] )?(?:PHP )?(Fatal error|Parse error): +(?:Uncaught )?(.*)$/
/** The line that ends a message, and the whole message with it. */
const END = /^([^]*) in (\S+?)(?: on line |:)(\d+)$/
const TYPED = /^([A-Z][\w\\]*): ([^]*)$/
const FRAME = /^#\d+ (?:([^\s(]+)\((\d+)\): )?(.*)$/
const OF_A_TRACE = /^(?:Stack trace:|#\d+ | {2}thrown in )/
const MAX_MESSAGE_LINES = 20

export const readPhp: Reader = (lines) => {
  const from = lines.findLastIndex((line) => HEAD.test(line))
  if (from < 0) return null
  const [, level, first] = HEAD.exec(lines[from]) ?? []
  const end = [first, ...lines.slice(from + 1, from + MAX_MESSAGE_LINES)].findIndex((line) => END.test(line))
  if (end < 0) return null
  const text = [first, ...lines.slice(from + 1, from + end + 1)].join('\n')
  const [, said, file, line] = END.exec(text) ?? []
  const [, errorName = level, errorMessage = said] = TYPED.exec(said) ?? []
  const to = onWhile(lines, from + end + 1, OF_A_TRACE)
  const frames = foundIn(lines.slice(from + end + 1, to), FRAME)
  return { kind: 'exception', errorName, errorMessage, from, to, places: placesOf({ file, line }, frames), causes: [] }
}

/** A frame says where it calls, and the next one in which function that is. */
function placesOf (where: { file: string, line: string }, frames: RegExpExecArray[]): Place[] {
  const calls = [where, ...frames.map(([, file, line]) => ({ file, line }))]
  return calls.filter(({ file }) => file !== undefined).map(({ file, line }, index) =>
    toPlace(!/\/vendor\//.test(file), [(frames[index]?.[3] ?? '').replace(/\(.*$/, '').replace('{main}', '') || null,
      file, line])
  )
}
