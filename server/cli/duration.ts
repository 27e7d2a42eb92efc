import { parseDuration } from '../config/duration.ts'
import { DeckError } from '../errors.ts'

const DEFAULT_TIMEOUT = '5m'
// A Node timer cannot wait longer.
const MAX_MS = 2 ** 31 - 1

/** `option`: for the message; `text`: such as `500ms`, `30s`, `5m`, `1h` @returns ms @throws {DeckError} usage */
export function checkedDuration (option: string, text: string): number {
  const ms = parseDuration(text)
  if (ms !== null && ms > 0 && ms <= MAX_MS) return ms
  throw new DeckError('usage',
    `${option}: expected a duration such as 500ms, 30s, 5m or 1h, received ${JSON.stringify(text)}`)
}

/** @returns ms @throws {DeckError} usage */
export function optionalDuration (option: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : checkedDuration(option, text)
}

/** Tells how long a command may take. Returns `text`: as it was given. @throws {DeckError} usage */
export function timeoutOf ({ timeout }: { timeout?: string },
  env: Record<string, string | undefined>): { timeoutMs: number, text: string }
{
  const text = timeout ?? (env.CLUSTERDECK_TIMEOUT || DEFAULT_TIMEOUT)
  const option = timeout === undefined && env.CLUSTERDECK_TIMEOUT ? 'CLUSTERDECK_TIMEOUT' : '--timeout'
  return { timeoutMs: checkedDuration(option, text), text }
}
