const AT_START_OF_WORD = 8
const NEXT_TO_LAST = 4
const FIRST = 6
const MAX_GAP = 12
/** Words begin with these: `crashes`, `r12` in `Release r12`, `js` in `price.js`. */
const LETTER = /[\p{L}\p{N}]/u

/**
 * Rates how well a text fits what somebody types: each word of it has to be there, its letters in order, perhaps with
 * others between them.
 * @returns more is better; null: not at all
 */
export function fuzzyScore (query: string, text: string): number | null {
  const letters = Array.from(text.toLowerCase())
  let total = 0
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const score = wordScore(Array.from(word), letters)
    if (score === null) return null
    total += score
  }
  return total
}

/** The best of all places where the word may begin. */
function wordScore (word: string[], letters: string[]) {
  let best: number | null = null
  for (let start = letters.indexOf(word[0]); start !== -1; start = letters.indexOf(word[0], start + 1)) {
    const score = scoreFrom(start, word, letters)
    if (score !== null && (best === null || score > best)) best = score
  }
  return best
}

function scoreFrom (start: number, word: string[], letters: string[]) {
  let score = start === 0 ? FIRST : 0
  let last = start - 1
  for (const letter of word) {
    const at = letters.indexOf(letter, last + 1)
    if (at === -1) return null
    if (isStartOfWord(at, letters)) score += AT_START_OF_WORD
    else if (at === last + 1) score += NEXT_TO_LAST
    else score -= Math.min(MAX_GAP, at - last - 1)
    last = at
  }
  // Letters that are merely somewhere in the text are in nearly every text.
  return score < word.length ? null : score
}

function isStartOfWord (at: number, letters: string[]) {
  return LETTER.test(letters[at]) && (at === 0 || !LETTER.test(letters[at - 1]))
}
