/** Causes that read badly as the API has them. */
const WORDS: Readonly<Record<string, string>> = Object.freeze({ 'app-request': 'asked for by the app',
  'boot-failure': 'failed to start', killed: 'killed from outside', 'max-age': 'age limit',
  'max-requests': 'request limit', operator: 'by an operator' })

/** `cause`: of an event @returns for people */
export function causeText (cause: string): string {
  return Object.hasOwn(WORDS, cause) ? WORDS[cause] : cause.replaceAll('-', ' ')
}
