import { backWhile, foundIn, onWhile, toPlace, type Place, type Reader } from './trace.ts'

const FRAME = /^\s+at (?:([\w.@-]*)\/\/?)?([\w$.<>]+)\(([^()]*)\)$/
const OF_A_TRACE = /^\s+(?:at |\.\.\. \d+ |Suppressed: )|^Caused by: /
const HEAD = /^(?:Exception in thread "[^"]*" )?(?:[^\s"]+ )?((?:[\w$]+\.)*[A-Z][\w$]*)(?:: (.*))?$/
const CAUSE = /^Caused by: ((?:[\w$]+\.)*[\w$]+)(?:: (.*))?$/
const MAX_MESSAGE_LINES = 20
const LIBRARIES =
  /^(?:java|javax|jdk|sun|com\.sun|jakarta|kotlin|kotlinx|scala|clojure|groovy|org\.springframework|org\.apache|org\.eclipse|org\.hibernate|org\.postgresql|org\.slf4j|ch\.qos|io\.netty|io\.undertow|io\.vertx|io\.micronaut|io\.quarkus|io\.ktor|reactor|com\.zaxxer|com\.fasterxml|com\.google\.common|akka|play)\./

export const readJava: Reader = (lines) => {
  const last = lines.findLastIndex((line) => FRAME.test(line))
  if (last < 0) return null
  const top = backWhile(lines, last + 1, OF_A_TRACE)
  const from = headOf(lines, top)
  const [, errorName, first = ''] = HEAD.exec(lines[from] ?? '') ?? []
  if (errorName === undefined) return null
  const to = onWhile(lines, top, OF_A_TRACE)
  const end = onWhile(lines, top, /^\s+at /)
  return { kind: 'exception', errorName, errorMessage: [first, ...lines.slice(from + 1, top)].join('\n'), from, to,
    places: foundIn(lines.slice(top, end), FRAME).map(placeOf),
    causes: foundIn(lines.slice(top, to), CAUSE).map(([, name, errorMessage = '']) => ({ errorName: name,
      errorMessage })
    ) }
}

/** A message may have several lines. Returns -1: there is none. */
function headOf (lines: string[], top: number): number {
  for (let index = top - 1; index >= 0 && index >= top - MAX_MESSAGE_LINES; index--) {
    const name = HEAD.exec(lines[index])?.[1]
    if (name && (name.includes('.') || /(?:Exception|Error)$/.test(name))) return index
  }
  return -1
}

function placeOf ([, module, name, place]: RegExpExecArray): Place {
  const [, file, line] = /^(\w+\.\w+)(?::(\d+))?$/.exec(place) ?? []
  const folder = name.split('.').slice(0, -2).join('/')
  return toPlace(file !== undefined && !(module && module !== 'app') && !LIBRARIES.test(name), [name,
    file && `${folder ? `${folder}/` : ''}${file}`, line])
}
