import { createSlugs, manualPage, manualPages } from '../manual.ts'

/** Looks for words in the manual. */
/** `excerpt`: of the first paragraph, row or line of the section that has one of the words */
type Hit = { page: string, heading: string, url: string, excerpt: string }

const MAX_HITS = 30
const CHARS_BEFORE = 80
const CHARS_AFTER = 160
/** of Markdown, which an excerpt does without */
const MARKS = /^[-|] |[`*[]| \|$|\]\([^)]*\)/g

/** @returns sections that have all of the words; those that have more of them in their headings come first */
export function searchManual (text: string): Hit[] {
  const words = text.toLowerCase().split(/\s+/)
  const isIn = (said: string) => {
    const lower = said.toLowerCase()
    return (word: string) => lower.includes(word)
  }
  const ranked = manualPages().flatMap(({ name, title }) => {
    const slugOf = createSlugs()
    return String(manualPage(name)).split(/^(?=#{1,4} )/m).flatMap((section) => {
      const [head, ...lines] = section.replace(/^#+ /, '').split('\n')
      const hit = { page: title, heading: head.replace(MARKS, ''), url: `/docs/${name}#${slugOf(head)}`,
        excerpt: excerptOf(lines.find((line) => words.some(isIn(line))) ?? '', words) }
      const rank = words.filter(isIn(`${title} ${head}`)).length
      return words.every(isIn(`${title} ${section}`)) ? [{ rank, hit }] : []
    })
  })
  return ranked.sort((one, other) => other.rank - one.rank).slice(0, MAX_HITS).map(({ hit }) => hit)
}

function excerptOf (line: string, words: string[]): string {
  const text = line.replace(MARKS, '').replaceAll(' | ', ' · ').trim()
  const place = Math.max(...words.map((word) => text.toLowerCase().indexOf(word)))
  const begin = place > CHARS_BEFORE ? text.indexOf(' ', place - CHARS_BEFORE) + 1 : 0
  const shown = text.slice(begin, Math.max(place, 0) + CHARS_AFTER)
  return `${begin > 0 ? '… ' : ''}${shown}${begin + shown.length < text.length ? ' …' : ''}`
}
