import { createSlugs, manualPage, manualPages } from '../manual.ts'

/** Looks for words in the manual. */
/** `excerpt`: the first paragraph, row or line of the section that has one of the words */
type Hit = { page: string, heading: string, url: string, excerpt: string }

const MAX_HITS = 30
const MAX_EXCERPT_CHARS = 240
/** of Markdown, which an excerpt does without */
const MARKS = /^[-|] |[`*[]| \|$|\]\([^)]*\)/g

/** @returns sections that have all of the words; those that have more of them in their headings come first */
export function searchManual (text: string): Hit[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const ranked = manualPages().flatMap(({ name, title }) =>
    sectionsOf(String(manualPage(name))).flatMap(({ heading, slug, lines }) => {
      const heads = `${title} ${heading}`.toLowerCase()
      if (!words.every((word) => heads.includes(word) || lines.some((line) => line.toLowerCase().includes(word))))
        return []
      const [first = ''] = lines.filter((line) => words.some((word) => line.toLowerCase().includes(word)))
      return [{ rank: words.filter((word) => heads.includes(word)).length,
        hit: { page: title, heading, url: `/docs/${name}#${slug}`, excerpt: excerptOf(first, words) } }]
    })
  )
  return ranked.sort((one, other) => other.rank - one.rank).slice(0, MAX_HITS).map(({ hit }) => hit)
}

function sectionsOf (markdown: string): { heading: string, slug: string, lines: string[] }[] {
  const slugOf = createSlugs()
  return markdown.split(/^(?=#{1,4} )/m).map((section) => {
    const [head, ...lines] = section.split('\n')
    const heading = head.replace(/^#+ /, '')
    return { heading: heading.replace(MARKS, ''), slug: slugOf(heading), lines }
  })
}

function excerptOf (line: string, words: string[]) {
  const text = line.replace(MARKS, '').replaceAll(' | ', ' · ').trim()
  const from = Math.max(0,
    Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0)) - 80)
  if (text.length <= MAX_EXCERPT_CHARS || !Number.isFinite(from)) return text.slice(0, MAX_EXCERPT_CHARS)
  const begin = from === 0 ? 0 : text.indexOf(' ', from) + 1
  return `${begin > 0 ? '… ' : ''}${text.slice(begin, begin + MAX_EXCERPT_CHARS)} …`
}
