import { messageOf, toPlace, type Place, type Reader } from './trace.ts'

const HEAD = /^(panic|fatal error|SIG[A-Z]+): (.*)$/
const GOROUTINE = /^goroutine \d+ .*\[.*\]:$/
const AFTER_MESSAGE = /^(?:\[signal |goroutine \d|runtime stack:|PC=)/
const RAISED_AGAIN = /^\tpanic: (.*)$/
const AGAIN = / \[recovered(?:, repanicked)?\]$/
const PLACE = /^\t(.+):(\d+)(?: \+0x[0-9a-f]+.*)?$/
const IN_MODULES = /\/pkg\/mod\/|@v\d|(?:^|\/)vendor\//
const STANDARD = new Set(['archive', 'bufio', 'bytes', 'cmp', 'compress', 'container', 'context', 'crypto', 'database',
  'debug', 'embed', 'encoding', 'errors', 'expvar', 'flag', 'fmt', 'go', 'hash', 'html', 'image', 'index', 'internal',
  'io', 'iter', 'log', 'maps', 'math', 'mime', 'net', 'os', 'path', 'plugin', 'reflect', 'regexp', 'runtime', 'slices',
  'sort', 'strconv', 'strings', 'structs', 'sync', 'syscall', 'testing', 'text', 'time', 'unicode', 'unique', 'unsafe',
  'weak', 'vendor', 'panic'])

export const readGo: Reader = (lines) => {
  const from = lines.findLastIndex((line) => HEAD.test(line))
  const [, errorName, first] = HEAD.exec(lines[from] ?? '') ?? []
  const begin = from < 0 ? -1 : lines.findIndex((line, index) => index > from && GOROUTINE.test(line))
  if (begin < 0) return null
  const [message, ...before] = messagesOf(messageOf(first, lines, from + 1, AFTER_MESSAGE).text)
  return { kind: 'panic', errorName, errorMessage: message, from,
    to: lines.findLastIndex((line) => PLACE.test(line)) + 1, places: placesOf(lines, begin + 1),
    causes: before.map((errorMessage) => ({ errorName, errorMessage })) }
}

/** One panic may follow another. Returns the last one first. */
function messagesOf (text: string): string[] {
  const messages: string[] = []
  for (const line of text.split('\n')) {
    const again = RAISED_AGAIN.exec(line)?.[1]
    if (messages.length === 0 || again !== undefined) messages.unshift(again ?? line)
    else messages[0] += `\n${line}`
  }
  return messages.map((message) => message.replace(AGAIN, ''))
}

/** `begin`: of a goroutine */
function placesOf (lines: string[], begin: number): Place[] {
  const places = []
  for (let index = begin; index + 1 < lines.length && lines[index] !== ''; index += 2) {
    const place = placeOf(lines[index], lines[index + 1])
    if (place) places.push(place)
  }
  return places
}

function placeOf (call: string, text: string): Place | null {
  const [, file, line] = PLACE.exec(text) ?? []
  // Who has started the goroutine has not called what failed.
  if (file === undefined || call.startsWith('created by ')) return null
  const name = call.slice(0, call.lastIndexOf('(')) || call
  return toPlace(isOwn(name, file), [name, file, line])
}

/** `name`: `host/path/package.Function` */
function isOwn (name: string, file: string) {
  const [first] = name.split(/[./]/, 1)
  return name.startsWith('main.') ||
    !(IN_MODULES.test(file) || (STANDARD.has(first) && !name.slice(0, name.indexOf('/') + 1).includes('.')))
}
