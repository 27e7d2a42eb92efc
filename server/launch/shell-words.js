/** @typedef {import('./refusal.js').Reason} Reason */

/** What only a shell can do, by the characters that ask for it outside of quotes. @type {Readonly<Record<string, Reason>>} */
const SIGNS = Object.freeze({ '|': 'pipeline', '||': 'several', '&': 'several', '&&': 'several', ';': 'several', '\n': 'several', '(': 'several', ')': 'several', '<': 'redirection', '>': 'redirection', '*': 'expansion', '?': 'expansion', '[': 'expansion' })
const SUBSTITUTES = new Set(['$', '`'])
const SPACE = /[ \t]/

/**
 * The words of a command as sh(1) splits them, as long as it is one command without anything that a shell puts in.
 * @param {string} text
 * @returns {{ words: string[] } | { reason: Reason, sign: string }}
 */
export function splitWords (text) {
  /** @type {string[]} */
  const words = []
  /** @type {string | null} null: between two words */
  let word = null
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (SPACE.test(char) || (char === '\n' && text.slice(at).trim() === '')) {
      if (word !== null) words.push(word)
      word = null
    } else if (char === '#' && word === null) {
      at = endOfLine(text, at) - 1
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1)
      if (end === -1) return { reason: 'quote', sign: char }
      word = (word ?? '') + text.slice(at + 1, end)
      at = end
    } else if (char === '"') {
      const quoted = readQuoted(text, at + 1)
      if ('reason' in quoted) return quoted
      word = (word ?? '') + quoted.content
      at = quoted.end
    } else if (char === '\\') {
      // A line that goes on in the next one.
      if (text[++at] !== '\n') word = (word ?? '') + (text[at] ?? '\\')
    } else if (SUBSTITUTES.has(char) || (char === '~' && word === null)) {
      return { reason: 'expansion', sign: char }
    } else if (SIGNS[char]) {
      const twice = text.slice(at, at + 2)
      return SIGNS[twice] ? { reason: SIGNS[twice], sign: twice } : { reason: SIGNS[char], sign: char === '\n' ? 'a second line' : char }
    } else {
      word = (word ?? '') + char
    }
  }
  return { words: word === null ? words : [...words, word] }
}

/**
 * @param {string} text @param {number} start behind the quote
 * @returns {{ content: string, end: number } | { reason: Reason, sign: string }}
 */
function readQuoted (text, start) {
  let content = ''
  for (let at = start; at < text.length; at++) {
    if (text[at] === '"') return { content, end: at }
    if (SUBSTITUTES.has(text[at])) return { reason: 'expansion', sign: text[at] }
    if (text[at] === '\\' && '$`"\\\n'.includes(text[at + 1] ?? ' ')) at++
    content += text[at]
  }
  return { reason: 'quote', sign: '"' }
}

/** @param {string} text @param {number} from */
function endOfLine (text, from) {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/** Words that a person can read, and paste into a shell. @param {string[]} words */
export function shownWords (words) {
  return words.map((word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
}
