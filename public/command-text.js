/**
 * Says what a form is about to do, as text for a shell. `{note}` in a call stands for a field of the form, `{workers:json}` for
 * what it says as JSON, `{value:option}` for a text where that is no JSON. What is empty is left out, with the flag before it.
 * @typedef {import('../server/api/endpoint.js').Method} Method
 * @typedef {{ method: Method, path: string, headers?: Record<string, string>, body?: Template, cli?: string[], needs?: string[] }} Call  `needs`: fields without which the call is not meant
 * @typedef {{ [name: string]: string | Template }} Template  a group of which all is empty is left out as a whole
 * @typedef {Record<string, string | undefined>} Values  of the fields, by name
 * @typedef {{ method: Method, path: string, headers: Record<string, string>, body: Record<string, unknown> | null }} Request
 */

const FIELD = /\{(\w+)(?::(json|option))?\}/g
const PLAIN = /^[\w@%+=:,./-]+$/
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/**
 * @param {Call[]} calls  the first one is taken whose fields are filled in: those that its path names, and those that it needs
 * @param {Values} values
 * @returns {{ curl: string, cli: string | null }} of a field that is no JSON: a comment that says so
 */
export function commandTexts (calls, values) {
  const [call] = calls.filter(({ path, needs = [] }) => [...fieldsOf(path), ...needs].every((name) => values[name]?.trim()))
  try {
    return { curl: toCurl(requestOf(call, values)), cli: call.cli ? toCli(call.cli, values) : null }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { curl: '# expected JSON', cli: call.cli ? '# expected JSON' : null }
  }
}

/** @param {Call} call @param {Values} values @returns {Request} @throws {SyntaxError} a field is no JSON */
export function requestOf ({ method, path, headers = {}, body }, values) {
  return {
    method,
    path: fillIn(path, values, encodeURIComponent),
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, fillIn(text, values)])),
    body: body ? bodyOf(body, values) : null
  }
}

/** @param {Template} template @param {Values} values @returns {Record<string, unknown>} */
function bodyOf (template, values) {
  return Object.fromEntries(Object.entries(template)
    .filter(([, part]) => !isEmpty(part, values))
    .map(([name, part]) => [fillIn(name, values), typeof part === 'string' ? valueOf(part, values) : bodyOf(part, values)]))
}

/** @param {Request} request @returns {string} with the address and the token in variables, as in the manual */
function toCurl ({ method, path, headers, body }) {
  return [
    'curl',
    ...(method === 'POST' && body ? [] : ['-X', method]),
    '-H "Authorization: Bearer $CLUSTERDECK_TOKEN"',
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', quoteWord(`${name}: ${value}`)]),
    ...(body ? ['-H', quoteWord('Content-Type: application/json'), '-d', quoteWord(JSON.stringify(body))] : []),
    `"$CLUSTERDECK_URL"${quoteWord(path)}`
  ].join(' ')
}

/** @param {string[]} words @param {Values} values */
function toCli (words, values) {
  const isLeftOut = (/** @type {string | undefined} */ word) => word !== undefined && isEmpty(word, values)
  return ['clusterdeck', ...words
    .filter((word, index) => !isLeftOut(word) && !(word.startsWith('--') && isLeftOut(words[index + 1])))
    .map((word) => quoteWord(fillIn(word, values)))].join(' ')
}

/** @param {string} text */
function fieldsOf (text) {
  return Array.from(text.matchAll(FIELD), ([, name]) => name)
}

/** @param {string | Template} text @param {Values} values @returns {boolean} */
function isEmpty (text, values) {
  if (typeof text !== 'string') return Object.values(text).every((part) => isEmpty(part, values))
  const names = fieldsOf(text)
  return names.length > 0 && names.every((name) => !values[name]?.trim())
}

/** @param {string} text @param {Values} values @returns {unknown} */
function valueOf (text, values) {
  const [whole, name, kind] = text.matchAll(FIELD).next().value ?? []
  if (whole !== text || kind === undefined) return fillIn(text, values)
  try {
    return JSON.parse(values[name] ?? '')
  } catch (error) {
    if (kind === 'option') return values[name]
    throw error
  }
}

/** @param {string} text @param {Values} values @param {(value: string) => string} [encode] */
function fillIn (text, values, encode = (value) => value) {
  return text.replace(FIELD, (_, name) => encode(values[name] ?? ''))
}

/**
 * One word of bash and zsh. A control character is spelled out, so that a terminal that it is pasted into never obeys it.
 * @param {string} text
 */
export function quoteWord (text) {
  if (PLAIN.test(text)) return text
  if (!CONTROL.test(text)) return `'${text.replaceAll("'", String.raw`'\''`)}'`
  const spelled = Array.from(text, (character) => {
    if (character === "'" || character === '\\') return `\\${character}`
    return CONTROL.test(character) ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}` : character
  })
  return `$'${spelled.join('')}'`
}
