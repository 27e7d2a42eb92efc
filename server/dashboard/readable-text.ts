import { readable } from '../../public/readable-text.ts'

export { readable }

/** @returns its first line with text, cut, with an ellipsis if there is more */
export function firstLine (text: unknown, maxChars: number): string {
  const whole = readable(text).trim()
  const line = whole.split('\n', 1)[0].slice(0, maxChars).trimEnd()
  return line.length < whole.length ? `${line} …` : line
}
