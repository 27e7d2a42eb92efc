import { DeckError } from '../errors.ts'

/** `what`: an option, or a command with one word @throws {DeckError} usage */
export function checkedCount (what: string, text: string, { min = 1, max }: { min?: number, max: number }): number {
  const count = /^\d+$/.test(text) && text.length <= String(max).length ? Number(text) : NaN
  if (count >= min && count <= max) return count
  throw new DeckError('usage', `${what}: expected an integer from ${min} to ${max}, received ${JSON.stringify(text)}`)
}
