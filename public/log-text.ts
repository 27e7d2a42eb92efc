import { levelName, type Level } from './log-levels.ts'

/**
 * Prepares lines of the workers' output. They are the app's, and anybody's who makes it log something, so nothing
 * in them is obeyed but colours, which become classes. Used by the server for the first paint and by the browser for
 * what comes, so that both agree.
 * `style`: class names, empty for plain text
 */
export type Part = { text: string, style: string }
/**
 * `text`: that of all parts; `raw`: as it was written, without what a terminal would obey; `cutChars`: how many
 * characters of the line were left out at its end
 */
type ShownLine = { text: string, raw: string, parts: Part[], cutChars: number }

/** A worker may write lines of any length; a page shows no more of one. */
export const MAX_SHOWN_CHARS = 4000
/** The parts of a line are limited, too. */
const MAX_PARTS = 200

// ECMA-48: control sequences (colours among them), strings such as titles and links that have an end, and escapes of a
// few characters. What begins one of them is in no other, so a line of nothing but beginnings takes no longer than
// others.
const ESCAPES =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0090-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g
const COLOURS = /^(?:\u001b\[|\u009b)([\d;:]*)m$/
// Control characters, and those that turn round the direction in which what follows is read.
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const NAMES = Object.freeze(['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'])
const ATTRIBUTES: Readonly<Record<number, 'bold' | 'dim' | 'italic' | 'underline'>> = Object.freeze({ 1: 'bold',
  2: 'dim', 3: 'italic', 4: 'underline' })

/** Class names. */
export const TONES: Readonly<Record<Level, string>> = Object.freeze({ error: 'tone-bad', warn: 'tone-warn',
  info: 'tone-info', debug: 'tone-idle', none: '' })
const LEVEL_FIELDS = Object.freeze(['level', 'severity', 'lvl'])
const MESSAGE_FIELDS = Object.freeze(['msg', 'message'])
/** Each line has the time of its arrival in front. */
const TIME_FIELDS = Object.freeze(['time', 'timestamp', '@timestamp', 'ts'])
/** They are left out where the message says the same. */
const REQUEST_FIELDS = Object.freeze(['method', 'url', 'path'])
const OWN_TIME = /^\s*\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d)?)\]?:?\s+(?=\S)/
/** How long a program may keep a line back. */
const SAME_TIME_MS = 10_000
/** The zones of the world differ by so much, and a time need not name its own. */
const ZONE_STEP_MS = 15 * 60_000

/**
 * `text`: a line as it was written; `arrivedAt`: the time in front of it, which the line is not to say again.
 * @returns without escape sequences, a space for each other control character but tabs; a JSON object as its level, its
 * message and its other fields
 */
export function shownLine (text: string, arrivedAt?: string | null): ShownLine {
  // Cut before it is looked at: what it costs to show a line must not depend on who wrote it.
  const part = text.length > MAX_SHOWN_CHARS ? wholeCharacters(text.slice(0, MAX_SHOWN_CHARS)) : text
  const cutChars = text.length - part.length
  const parts = (cutChars === 0 && jsonParts(part)) || withoutTime(toColoured(part), arrivedAt)
  return { text: parts.map(({ text: each }) => each).join(''), raw: part.replace(ESCAPES, '').replace(CONTROLS, ' '),
    parts, cutChars }
}

/**
 * @param hits where each begins and ends in the text of all parts, in order
 * @returns the same text, with a class at what was hit
 */
export function markHits (parts: readonly Part[], hits: readonly [number, number][]): Part[] {
  if (hits.length === 0) return [...parts]
  let end = 0
  return parts.flatMap(({ text, style }) => {
    const begin = end
    end += text.length
    const edges = hits.flat().filter((edge) => edge > begin && edge < end)
    return [begin, ...edges].map((from, index) => {
      const isHit = hits.some((hit) => from >= hit[0] && from < hit[1])
      return { text: text.slice(from - begin, (edges[index] ?? end) - begin),
        style: isHit ? `${style} line-hit`.trim() : style }
    })
  })
}

function withoutTime (parts: Part[], arrivedAt: string | null | undefined): Part[] {
  const [whole, time] = OWN_TIME.exec(parts[0]?.text ?? '') ?? []
  if (whole === undefined || !arrivedAt) return parts
  const apartMs = Math.abs(Date.parse(time.replace(',', '.')) - Date.parse(arrivedAt)) % ZONE_STEP_MS
  if (!(Math.min(apartMs, ZONE_STEP_MS - apartMs) <= SAME_TIME_MS)) return parts
  return [{ ...parts[0], text: parts[0].text.slice(whole.length) }, ...parts.slice(1)]
}

export function withoutEscapes (text: string) {
  return text.replace(ESCAPES, '')
}

/** `text`: a line. Returns null: it is no JSON object that says something. */
function jsonParts (text: string): Part[] | null {
  const fields = objectOf(text)
  if (!fields) return null
  const levelField = LEVEL_FIELDS.find((name) => ['string', 'number'].includes(typeof fields[name]))
  const messageField = MESSAGE_FIELDS.find((name) => typeof fields[name] === 'string')
  if (levelField === undefined && messageField === undefined) return null
  const level = levelField === undefined ? '' : levelName(String(fields[levelField]))
  const words = messageField === undefined ? [] : String(fields[messageField]).split(/\s+/)
  const rest = Object.entries(fields).filter(([name, value]) =>
    name !== levelField && name !== messageField && !TIME_FIELDS.includes(name) &&
    !(REQUEST_FIELDS.includes(name) && words.includes(String(value)))
  )
  return [{ text: level && `${cleanText(level).slice(0, 12).toUpperCase().padEnd(5)} `, style: 'line-level' }, {
    text: messageField === undefined ? '' : cleanText(String(fields[messageField])),
    style: 'line-message'
  },
    ...rest.slice(0, MAX_PARTS / 2).flatMap((
      [name, value]
    ) => [{ text: ` ${cleanText(name)}=`, style: 'line-field' }, { text: cleanText(textOf(value)), style: '' }])]
    .filter(({ text: each }) => each !== '')
}

function objectOf (text: string): Record<string, unknown> | null {
  if (!/^\s*\{.*\}\s*$/.test(text)) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function textOf (value: unknown) {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function cleanText (text: string) {
  return text.replace(ESCAPES, '').replace(/\n/g, ' ⏎ ').replace(CONTROLS, ' ')
}

function toColoured (text: string): Part[] {
  const parts: Part[] = []
  let state = PLAIN
  let from = 0
  const addPiece = (piece: string) => {
    if (piece === '') return
    const style = styleOf(state)
    const last = parts.at(-1)
    if (last && (last.style === style || parts.length === MAX_PARTS)) last.text += piece
    else parts.push({ text: piece, style })
  }
  for (const { 0: sequence, index } of text.matchAll(ESCAPES)) {
    addPiece(text.slice(from, index).replace(CONTROLS, ' '))
    from = index + sequence.length
    const [, codes] = COLOURS.exec(sequence) ?? []
    if (codes !== undefined) state = changeStyle(state, codes)
  }
  addPiece(text.slice(from).replace(CONTROLS, ' '))
  return parts
}

type State = { colour: string, bold: boolean, dim: boolean, italic: boolean, underline: boolean }

const PLAIN: Readonly<State> = Object.freeze({ colour: '', bold: false, dim: false, italic: false, underline: false })

/** `codes`: of an SGR sequence */
function changeStyle (state: State, codes: string): State {
  const numbers = codes.split(/[;:]/, 32).map(Number)
  let next = state
  for (let index = 0; index < numbers.length; index++) {
    const code = numbers[index]
    if (code === 38 || code === 48) {
      const kind = numbers[index + 1]
      const values = numbers.slice(index + 2, index + (kind === 2 ? 5 : 3))
      if (code === 38 && values.length > 0)
        next = { ...next, colour: kind === 2 ? nearestColour(values) : ofPalette(values[0]) }
      index += 1 + values.length
    } else next = changedBy(next, code)
  }
  return next
}

/** @returns what is no foreground or attribute, such as a background, changes nothing */
function changedBy (state: State, code: number): State {
  if (code === 0) return PLAIN
  if (code in ATTRIBUTES) return { ...state, [ATTRIBUTES[code]]: true }
  if (code === 22) return { ...state, bold: false, dim: false }
  if (code === 23) return { ...state, italic: false }
  if (code === 24) return { ...state, underline: false }
  if (code === 39) return { ...state, colour: '' }
  const name = NAMES[code >= 90 ? code - 90 : code - 30]
  return name && (code < 38 || code >= 90) ? { ...state, colour: name } : state
}

/** The 256 colours are 16 with names, a cube and greys. */
function ofPalette (index: number) {
  if (index < 16) return NAMES[index % 8]
  if (index >= 232) return index < 244 ? 'black' : 'white'
  const place = index - 16
  return nearestColour([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((step) => step * 51))
}

/** `channels`: red, green and blue, up to 255 */
function nearestColour (channels: number[]): string {
  const strongest = Math.max(...channels)
  const bits = channels.map((channel) => Number(channel > 64 && channel > strongest * 0.6))
  return NAMES[(bits[0] ?? 0) + 2 * (bits[1] ?? 0) + 4 * (bits[2] ?? 0)]
}

function styleOf ({ colour, ...attributes }: State) {
  return [colour && `ansi-${colour}`, ...Object.entries(attributes).map(([name, isOn]) => isOn ? `ansi-${name}` : '')]
    .filter(Boolean).join(' ')
}

/** Half a surrogate pair at the end is no character. */
function wholeCharacters (text: string) {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text
}
