/** Causes that read badly as the API has them. @type {Readonly<Record<string, string>>} */
const WORDS = Object.freeze({
  'app-request': 'asked for by the app',
  'boot-failure': 'failed to start',
  killed: 'killed from outside',
  'max-age': 'age limit',
  'max-requests': 'request limit',
  operator: 'by an operator'
})

/** @param {string} cause of an event @returns {string} for people */
export function causeText (cause) {
  return Object.hasOwn(WORDS, cause) ? WORDS[cause] : cause.replaceAll('-', ' ')
}
