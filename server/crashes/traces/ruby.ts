import { messageOf, onWhile, type Place, type Reader } from './trace.ts'

const HEAD = /^(.+?):(\d+):in [`'](.*?)': (.*?)(?: \(([A-Z][\w:]*)\))?$/
const FROM = /^\s+(?:\d+: )?from (.+?):(\d+)(?::in [`'](.*)')?$/
const OF_OTHERS = /\/gems\/|\/lib\/ruby\/|^<internal:/

export const readRuby: Reader = (lines) => {
  const from = lines.findLastIndex((line) => HEAD.test(line) && !FROM.test(line))
  const [, file, line, name, first, type] = HEAD.exec(lines[from] ?? '') ?? []
  if (file === undefined) return null
  const { text, to: top } = messageOf(first, lines, from + 1, FROM)
  // Where the message has several lines, the type is behind the first one.
  if (type === undefined && !FROM.test(lines[top] ?? '')) return null
  const to = onWhile(lines, top, FROM)
  const rest = lines.slice(top, to).map((each) => FROM.exec(each)).filter((found) => found !== null)
  return { kind: 'exception', errorName: type ?? 'RuntimeError', errorMessage: text, from, to,
    places: [toPlace(file, line, name), ...rest.map(([, file, line, name]) => toPlace(file, line, name))], causes: [] }
}

function toPlace (file: string, line: string, name: string | undefined = undefined): Place {
  return { function: name ?? null, file, line: Number(line), column: null, isOwn: !OF_OTHERS.test(file) }
}
