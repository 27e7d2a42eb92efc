/** Commands of a shell that are no programs. */
export const SHELL_WORDS = new Set(['cd', 'source', '.', 'set', 'export', 'if', 'for', 'while', 'test', '[', 'ulimit',
  'trap', '{', '!'])
/** The characters outside of quotes that ask for what only a shell can do. */
const SIGNS = new Set(['|', '&', ';', '\n', '(', ')', '<', '>', '*', '?', '['])
const SUBSTITUTES = new Set(['$', '`'])
const SPACE = /[ \t]/

/**
 * The words of a command as sh(1) splits them, as long as it is one command without anything that a shell puts in.
 * Returns null: it takes a shell.
 */
export function splitWords (text: string): string[] | null {
  const words: string[] = []
  /** null: between two words */
  let word: string | null = null
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (SPACE.test(char) || (char === '\n' && text.slice(at).trim() === '')) {
      if (word !== null) words.push(word)
      word = null
    } else if (char === '#' && word === null) {
      at = endOfLine(text, at) - 1
    } else if (char === '\'') {
      const end = text.indexOf('\'', at + 1)
      if (end === -1) return null
      word = (word ?? '') + text.slice(at + 1, end)
      at = end
    } else if (char === '"') {
      const quoted = readQuoted(text, at + 1)
      if (quoted === null) return null
      word = (word ?? '') + quoted.content
      at = quoted.end
    } else if (char === '\\') {
      // A line that goes on in the next one.
      if (text[++at] !== '\n') word = (word ?? '') + (text[at] ?? '\\')
    } else if (SUBSTITUTES.has(char) || SIGNS.has(char) || (char === '~' && word === null)) {
      return null
    } else {
      word = (word ?? '') + char
    }
  }
  return word === null ? words : [...words, word]
}

/** `start`: behind the quote */
function readQuoted (text: string, start: number): { content: string, end: number } | null {
  let content = ''
  for (let at = start; at < text.length; at++) {
    if (text[at] === '"') return { content, end: at }
    if (SUBSTITUTES.has(text[at])) return null
    if (text[at] === '\\' && '$`"\\\n'.includes(text[at + 1] ?? ' ')) at++
    content += text[at]
  }
  return null
}

function endOfLine (text: string, from: number) {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/** Words that a person can read, and paste into a shell. */
export function shownWords (words: string[]) {
  // A pattern for the whole word would need a stack as long as that.
  return words.map((word) =>
    word !== '' && !/[^\w@%+=:,./-]/.test(word) ? word : `'${word.replaceAll('\'', String.raw`'\''`)}'`
  ).join(' ')
}
