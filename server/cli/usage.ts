import { parseDuration } from '../config/duration.ts'
import { ID } from '../config/id.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import type { Options, TextOption } from './commands.ts'

// What was typed, and what is wrong with it.

const DEFAULT_TIMEOUT = '5m'
// A Node timer cannot wait longer.
const MAX_MS = 2 ** 31 - 1

/** `received`: as it is shown */
export function misuse (what: string, expected: string, received: string | number = 'none',
  options?: { cause?: unknown, details?: Record<string, unknown> })
{
  return new DeckError('usage', `${what}: expected ${expected}, received ${received}`, options)
}

/** `known`: the words that there are; `what`: an option, or a command @throws {DeckError} usage */
export function checkedWord<Word extends string> (what: string, known: readonly Word[], given: unknown): Word {
  const word = known.find((each) => each === given)
  if (word !== undefined) return word
  throw misuse(what, `one of ${known.join(', ')}`,
    given === undefined ? 'none' : JSON.stringify(given) + didYouMean(String(given), known))
}

/** `what`: an option, or a command with one word @throws {DeckError} usage */
export function checkedCount (what: string, text: string, { min = 1, max }: { min?: number, max: number }): number {
  const count = /^\d+$/.test(text) && text.length <= String(max).length ? Number(text) : NaN
  if (count >= min && count <= max) return count
  throw misuse(what, `an integer from ${min} to ${max}`, JSON.stringify(text))
}

/** `what`: an option, or a command @throws {DeckError} usage */
export function checkedForm (what: string, form: Pick<RegExp, 'test'>, expected: string,
  text: string | undefined): string
{
  if (text !== undefined && form.test(text)) return text
  throw misuse(what, expected, text === undefined ? 'nothing' : JSON.stringify(text))
}

/** `what`: an option, or a command @throws {DeckError} usage */
export function checkedId (what: string, text: string | undefined, of: string = 'a worker'): number {
  return Number(checkedForm(what, ID, `the id of ${of}`, text))
}

/** `text`: such as `500ms`, `30s`, `5m`, `1h` @returns ms @throws {DeckError} usage */
export function checkedDuration (option: string, text: string): number {
  const ms = parseDuration(text)
  if (ms !== null && ms > 0 && ms <= MAX_MS) return ms
  throw misuse(option, 'a duration such as 500ms, 30s, 5m or 1h', JSON.stringify(text))
}

/** @returns ms @throws {DeckError} usage */
export function optionalDuration (option: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : checkedDuration(option, text)
}

/** Tells how long a command may take. Returns `text`: as it was given; `signal`: from now on @throws {DeckError} usage */
export function timeoutOf ({ timeout }: { timeout?: string }, env: Record<string, string | undefined>) {
  const text = timeout ?? (env.CLUSTERDECK_TIMEOUT || DEFAULT_TIMEOUT)
  const option = timeout === undefined && env.CLUSTERDECK_TIMEOUT ? 'CLUSTERDECK_TIMEOUT' : '--timeout'
  const timeoutMs = checkedDuration(option, text)
  return { timeoutMs, text, signal: AbortSignal.timeout(timeoutMs) }
}

/** Makes a query of some options, as they were given. `more`: what is asked for beside them */
export function queryOf (options: Options, names: readonly TextOption[],
  more: Record<string, string | number | true | null | undefined> = {}): URLSearchParams
{
  const fields = { ...more, ...Object.fromEntries(names.map((name) => [name, options[name]])) }
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  return new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)])))
}

/** The hosts whose list is meant by --all-hosts, or by --member with it. */
export function membersMeant ({ allHosts, member = '*' }: Options): { member?: string } {
  return allHosts ? { member } : {}
}

/** `list`: such as `shop,mail`. Returns undefined: none is given. */
export function namesIn (list: string | undefined): string[] | undefined {
  return list?.split(',').map((name) => name.trim()).filter(Boolean)
}
