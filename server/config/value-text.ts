import { attempt } from '../errors.ts'

/** Reads the value of an option as people type it: numbers, true, false and lists are JSON, anything else is a text. */
export function valueFromText (text: string): unknown {
  return attempt(() => JSON.parse(text), text)
}

export function textOfValue (value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
