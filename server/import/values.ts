/** Values as PM2 reads them (lib/tools/Config.js, lib/API/schema.json of PM2 7). */

const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }
const UNIT_MS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const WORD = /[^\s"'=]+="[^"]*"|[^\s"'=]+='[^']*'|"[^"]*"|'[^']*'|\S+/g
/** Characters that only a shell understands, outside of quotes. */
const SHELL_ONLY = /[|&;<>()$`*?[\]{}~#!\n]/

/** `value`: `"300M"`, `"1.5G"`, `314572800`. Returns null for what is no size. */
export function bytesOf (value: unknown): number | null {
  return measureOf(value, /^(\d+(?:\.\d+)?)\s*([KMG]?)B?$/, (unit) => UNIT_BYTES[unit.toUpperCase()])
}

/** `value`: `"10s"`, `"1h"`, `5000` @returns ms; null for what is no time */
export function millisecondsOf (value: unknown): number | null {
  return measureOf(value, /^(\d+(?:\.\d+)?)\s*(ms|[smh]?)$/, (unit) => UNIT_MS[unit.toLowerCase()])
}

function measureOf (value: unknown, form: RegExp, factorOf: (unit: string) => number): number | null {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  const [, count, unit] = new RegExp(form, 'i').exec(text) ?? []
  const measured = Math.round(Number(count) * factorOf(unit ?? ''))
  return Number.isSafeInteger(measured) ? measured : null
}

/** `value`: `3`, `"3"`. Returns null for what is no whole number. */
export function integerOf (value: unknown): number | null {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? Math.trunc(number) : null
}

/** PM2 takes `"false"` for true, but nobody means that. */
export function isOn (value: unknown) {
  return Boolean(value) && value !== 'false'
}

/**
 * Reads `args` and `node_args` as PM2 does: a text is cut at blanks, but not within quotes, and a word in quotes loses
 * them.
 * @returns without values that no argument can be, such as an object
 */
export function wordsOf (value: unknown): string[] {
  if (typeof value === 'string')
    return (value.match(WORD) ?? []).map(withoutQuotes).filter((word) => word.trim() !== '')
  if (Array.isArray(value))
    return value.filter((word) => ['string', 'number', 'boolean'].includes(typeof word)).map(String)
  return typeof value === 'number' ? [String(value)] : []
}

function withoutQuotes (word: string) {
  const [first] = word
  return word.length > 1 && (first === '"' || first === '\'') && word.endsWith(first) ? word.slice(1, -1) : word
}

/**
 * Reads a command as a shell does, if it is one program with its arguments.
 * @returns null: it needs a shell, for a pipeline, a variable or a pattern
 */
export function commandWords (line: string): string[] | null {
  const words: string[] = []
  let rest = line.trim()
  while (rest !== '') {
    const parts = /^(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+/s.exec(rest)
    if (parts === null) return null
    const word = [...parts[0].matchAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)/gs)]
    const needsShell = word.some(([, , double, , plain]) => /[$`]/.test(double ?? '') || SHELL_ONLY.test(plain ?? ''))
    if (needsShell) return null
    words.push(
      word.map(([, single, double, escaped, plain]) =>
        single ?? double?.replace(/\\(["\\])/g, '$1') ?? escaped ?? plain
      ).join('')
    )
    rest = rest.slice(parts[0].length).trimStart()
  }
  return words
}
