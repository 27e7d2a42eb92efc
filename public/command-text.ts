import type { Method } from '../server/api/endpoint.ts'
import type { Call, Template } from '../server/api/form.ts'

/**
 * Says what a form is about to do, as text for a shell. `{note}` in a call stands for a field of the form,
 * `{workers:json}` for what it says as JSON, `{value:option}` for a text where that is no JSON. What is empty is left
 * out, with the flag before it.
 */
/** of the fields, by name */
type Values = Record<string, string | undefined>
type Request = { method: Method, path: string, headers: Record<string, string>, body: Record<string, unknown> | null }

const FIELD = /\{([\w.]+)(?::(json|option))?\}/g
const PLAIN = /^[\w@%+=:,./-]+$/
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/**
 * `calls`: of which the first one is shown whose needed fields are filled in.
 * @returns of a field that is no JSON: a comment that says so
 */
export function commandTexts (calls: Call[], values: Values): { curl: string, cli: string | null } {
  const call = calls.find(({ needs }) => needs.every((name) => values[name]?.trim())) ?? (calls.at(-1) as Call)
  const line = typeof call.cli === 'object' ? call.cli[values.kind ?? ''] : call.cli
  try {
    return { curl: toCurl(requestOf(call, values)), cli: line === undefined ? null : toCli(line.split(' '), values) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { curl: '# expected JSON', cli: line === undefined ? null : '# expected JSON' }
  }
}

/** @throws {SyntaxError} a field is no JSON */
export function requestOf ({ method, path, headers = {}, body }: Call, values: Values): Request {
  return { method, path: fillIn(path, values, encodeURIComponent),
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, fillIn(text, values)])),
    body: body ? bodyOf(body, values) : null }
}

function bodyOf (template: Template, values: Values): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(template).filter(([, part]) => !isEmpty(part, values)).map((
      [name, part]
    ) => [fillIn(name, values), typeof part === 'string' ? valueOf(part, values) : bodyOf(part, values)])
  )
}

/** @returns with the address and the token in variables, as in the manual */
function toCurl ({ method, path, headers, body }: Request): string {
  return ['curl', ...(method === 'POST' && body ? [] : ['-X', method]), '-H "Authorization: Bearer $CLUSTERDECK_TOKEN"',
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', quoteWord(`${name}: ${value}`)]),
    ...(body ? ['-H', quoteWord('Content-Type: application/json'), '-d', quoteWord(JSON.stringify(body))] : []),
    `"$CLUSTERDECK_URL"${quoteWord(path)}`].join(' ')
}

function toCli (words: string[], values: Values) {
  const isLeftOut = (word: string | undefined) => word !== undefined && isEmpty(word, values)
  return words.filter((word, index) => !isLeftOut(word) && !(word.startsWith('--') && isLeftOut(words[index + 1]))).map(
    (word) => quoteWord(fillIn(word, values))
  ).join(' ')
}

function fieldsOf (text: string) {
  return Array.from(text.matchAll(FIELD), ([, name]) => name)
}

function isEmpty (text: string | Template, values: Values): boolean {
  if (typeof text !== 'string') return Object.values(text).every((part) => isEmpty(part, values))
  const names = fieldsOf(text)
  return names.length > 0 && names.every((name) => !values[name]?.trim())
}

function valueOf (text: string, values: Values): unknown {
  const [whole, name, kind] = text.matchAll(FIELD).next().value ?? []
  if (whole !== text || kind === undefined) return fillIn(text, values)
  try {
    return JSON.parse(values[name] ?? '')
  } catch (error) {
    if (kind === 'option') return values[name]
    throw error
  }
}

function fillIn (text: string, values: Values, encode: (value: string) => string = (value) => value) {
  return text.replace(FIELD, (_, name) => encode(values[name] ?? ''))
}

/**
 * One word of bash and zsh. A control character is spelled out, so that a terminal that it is pasted into never obeys
 * it.
 */
export function quoteWord (text: string) {
  if (PLAIN.test(text)) return text
  if (!CONTROL.test(text)) return `'${text.replaceAll('\'', String.raw`'\''`)}'`
  const spelled = Array.from(text, (character) => {
    if (character === '\'' || character === '\\') return `\\${character}`
    return CONTROL.test(character) ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}` : character
  })
  return `$'${spelled.join('')}'`
}
