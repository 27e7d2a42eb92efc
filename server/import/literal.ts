/** Writes values as JavaScript that reads back to the same values. */

/** The key of an expression whose properties an object spreads, below its others. */
export const SPREAD = '...'

/** A value that is computed where the app runs, such as its number of CPUs. `needs`: a module of Node that it uses. */
export class Expression {
  code: string
  needs: string | undefined

  constructor (code: string, needs?: string) {
    this.code = code
    this.needs = needs
  }
}

const LINE_WIDTH = 110
const NAME = /^[A-Za-z_$][\w$]*$/
// Control characters, line ends of JavaScript, half characters, and characters that show a line in another order.
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]|\p{Surrogate}/gu

/** `value`: texts, numbers, booleans, null, expressions, lists and objects of them; `indent`: of its first line */
export function literalOf (value: unknown, indent: string = ''): string {
  if (value instanceof Expression) return value.code
  if (typeof value === 'string') return quotedText(value)
  if (Array.isArray(value)) return listLiteral(value, indent)
  if (typeof value === 'object' && value !== null) return objectLiteral(value, indent)
  return String(value)
}

export function propertyName (key: string) {
  return NAME.test(key) ? key : quotedText(key)
}

function quotedText (text: string) {
  const escaped = text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r')
  return `'${escaped.replace(UNPRINTABLE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`
}

function listLiteral (values: unknown[], indent: string): string {
  const inner = `${indent}  `
  const parts = values.map((value) => literalOf(value, inner))
  const line = `[${parts.join(', ')}]`
  if (line.length + indent.length <= LINE_WIDTH && !line.includes('\n')) return line
  return `[\n${parts.map((part) => inner + part).join(',\n')}\n${indent}]`
}

function objectLiteral (values: object, indent: string): string {
  const inner = `${indent}  `
  const parts = Object.entries(values).map(([key, value]) => {
    const isSpread = key === SPREAD && value instanceof Expression
    return `${inner}${isSpread ? SPREAD : `${propertyName(key)}: `}${literalOf(value, inner)}`
  })
  return parts.length === 0 ? '{}' : `{\n${parts.join(',\n')}\n${indent}}`
}

/** Writes a comment of as many lines as needed; no text can end it. `hang`: the beginning of its further lines. */
export function commentLines (text: string, indent: string = '', hang: string = '') {
  return wrapLines(text, LINE_WIDTH - indent.length, hang).map((line) => `${indent}// ${line}`).join('\n')
}

export function wrapLines (text: string, width: number = LINE_WIDTH, hang: string = ''): string[] {
  const done: string[] = []
  for (const word of text.replace(UNPRINTABLE, ' ').trim().split(/\s+/)) {
    const line = done.at(-1)
    if (line !== undefined && line.length + word.length < width) done[done.length - 1] = `${line} ${word}`
    else done.push(`${done.length > 0 ? hang : ''}${word}`)
  }
  return done
}
