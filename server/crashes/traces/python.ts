import { backWhile, foundIn, messageOf, onWhile, toPlace, type Place, type Reader } from './trace.ts'

const FRAME = /^ +File "([^"]+)", line (\d+)(?:,? in (.+))?$/
const HEAD = /Traceback \(most recent call last\):$/
const FATAL = /^Fatal Python error: (.*)$/
const ERROR = /^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (.*))?$/
const CHAIN = /^(?:The above exception was the direct cause of|During handling of the above exception, another)/
const INDENTED = /^\s+\S/
const IS_GROUP = /Exception Group Traceback \(most recent call last\):$/
const OF_OTHERS = /(?:^|\/)(?:site-packages|dist-packages|lib(?:64)?\/(?:python|pypy)[\d.]*)\/|^</

export const readPython: Reader = (written) => {
  const lines = written.some((line) => IS_GROUP.test(line)) ? written.map((line) => withoutBranches(line)) : written
  return readFatal(lines) ?? readTraceback(lines)
}

/** The exceptions of a group are drawn as a tree. */
function withoutBranches (line: string) {
  return /^ +\+-[-+]{2}/.test(line) ? '' : line.replace(/^(?: +[|+])+ ?/, '')
}

function readTraceback (lines: Parameters<Reader>[0]): ReturnType<Reader> {
  const last = lines.findLastIndex((line) => FRAME.test(line))
  const end = last < 0 ? -1 : onWhile(lines, last, INDENTED)
  const [, errorName, first = ''] = ERROR.exec(lines[end] ?? '') ?? []
  if (errorName === undefined) return null
  const top = backWhile(lines, last, INDENTED)
  const from = HEAD.test(lines[top - 1] ?? '') ? top - 1 : top
  // It is told and forgotten.
  if (lines[from - 1]?.startsWith('Exception ignored in')) return readTraceback(lines.slice(0, from - 1))
  const { text, to } = messageOf(first, lines, end + 1)
  const places = foundIn(lines.slice(top, last + 1), FRAME).map(placeOf).reverse()
  const before = CHAIN.test(lines[from - 2] ?? '') ? readTraceback(lines.slice(0, from - 2)) : null
  return { kind: 'exception', errorName, errorMessage: text, from: before?.from ?? from, to, places,
    causes: before
      ? [before, ...before.causes].map(({ errorName, errorMessage }) => ({ errorName, errorMessage }))
      : [] }
}

/** What faulthandler writes. */
function readFatal (lines: Parameters<Reader>[0]): ReturnType<Reader> {
  const from = lines.findLastIndex((line) => FATAL.test(line))
  if (from < 0) return null
  const thread = lines.findIndex((line, index) => index > from && line.startsWith('Current thread '))
  const top = thread < 0 ? from + 1 : thread + 1
  const to = onWhile(lines, top, FRAME)
  const places = foundIn(lines.slice(top, to), FRAME).map(placeOf)
  return { kind: 'signal', errorName: 'Fatal Python error', errorMessage: FATAL.exec(lines[from])?.[1] ?? '', from,
    to: Math.max(to, lines.length), places, causes: [] }
}

function placeOf ([, file, line, name]: RegExpExecArray): Place {
  return toPlace(!OF_OTHERS.test(file), [name, file, line])
}
