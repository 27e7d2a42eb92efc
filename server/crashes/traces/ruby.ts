import { foundIn, messageOf, onWhile, toPlace, type Reader } from './trace.ts'

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
  const calls = [[file, line, name], ...foundIn(lines.slice(top, to), FROM).map(([, ...call]) => call)]
  return { kind: 'exception', errorName: type ?? 'RuntimeError', errorMessage: text, from, to,
    places: calls.map(([file, line, name]) => toPlace(!OF_OTHERS.test(file), [name, file, line])), causes: [] }
}
