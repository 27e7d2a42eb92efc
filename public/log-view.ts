import { BASE } from './base.ts'
import { createBacklog } from './log-backlog.ts'
import { formatCount, formatTime } from './format.ts'
import { LEVELS, levelOf } from './log-levels.ts'
import { createHits, createLineFilter, isPattern, type Wanted } from './log-query.ts'
import { markHits, shownLine, TONES, type Part } from './log-text.ts'
import type { createMatching } from './log-matching.ts'

/**
 * The lines on the page. New lines are added once a frame, and no more than MAX_LINES are kept. While the viewer reads
 * further up nothing moves: the newest MAX_LINES wait.
 * `hits`: where a regular expression has matched
 */
type Entry = import('./log-tail.ts').Entry & { hits?: [number, number][] }
export type Item = Entry | { note: string }
/** `waiting`: lines that came since somebody scrolled up */
export type ViewState = { isFollowing: boolean, waiting: number, shown: number }

export const MAX_LINES = 2000
/** Half a line at the end is the end: zoomed pages scroll by fractions. */
const END_PX = 8

/**
 * @param list with the lines that the server has put in
 * @param options `mark`: what is to be seen first; the end, unless said otherwise;
 * `wanted`: the lines that are searched for; no others are added; `matching`: looks for a regular expression
 */
export function createView (list: HTMLElement, onChange: (state: ViewState) => void,
  { mark = null, wanted = {}, matching = null }: { mark?: HTMLElement | null, wanted?: Wanted,
    matching?: ReturnType<typeof createMatching> | null } = {})
{
  const backlog: ReturnType<typeof createBacklog<Item>> = createBacklog(MAX_LINES)
  let isFollowing = mark === null
  const findIn = createLineFilter(wanted)
  let hasGivenUp = false
  const toElement = elementMaker(wanted)
  let frame = 0
  /** The scroll position that a change of the lines has set, not the viewer. */
  let movedTo = -1
  // A line without an end is sent again with its end.
  for (const line of list.querySelectorAll('[data-open]')) line.remove()
  if (matching) markShown()
  list.addEventListener('scroll', onScroll)
  const resizes = new ResizeObserver(settleScroll)
  resizes.observe(list)
  if (mark)
    list.scrollTop += mark.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2
  else toEnd()

  return { add (items: Item[]) {
    if (matching) addMatching(items)
    else addItems(items.filter((item) => !isLine(item) || findIn(item.text, item.stream) >= 0))
  }, follow (isOn: boolean) {
    isFollowing = isOn
    if (isOn) showLines()
    else reportCount()
  }, clear () {
    backlog.take()
    list.replaceChildren()
    isFollowing = true
    reportCount()
  }, settle: settleScroll, report: reportCount, end () {
    cancelAnimationFrame(frame)
    list.removeEventListener('scroll', onScroll)
    resizes.disconnect()
    matching?.end()
  } }

  function addItems (items: Item[]) {
    backlog.push(items)
    if (!isFollowing) reportCount()
    else if (frame === 0) frame = requestAnimationFrame(showLines)
  }

  async function addMatching (items: Item[]) {
    const asked = items.filter(isLine).map(({ text, stream, arrivedAt }) => ({ text, stream,
      shown: shownLine(text, arrivedAt).text })
    )
    const found = await matching?.find(asked)
    if (typeof found !== 'object') return giveUp(found)
    let place = 0
    addItems(items.flatMap((item) => {
      const hits = isLine(item) ? found[place++] : undefined
      return hits === null ? [] : [hits ? { ...item, hits } : item]
    }))
  }

  /** Marks what the server has put in: it leaves a regular expression to us. */
  async function markShown () {
    const lines = Array.from(list.querySelectorAll('.line'), (line) => ({ line, parts: partsOf(line) }))
    const texts = lines.map(({ parts }) => parts.map(({ text }) => text).join(''))
    // The server has chosen these, and by their whole text.
    const found = await matching?.find(texts.map((shown) => ({ text: shown, stream: null, shown })))
    if (typeof found !== 'object') return giveUp(found)
    for (const [index, { line, parts }] of lines.entries()) {
      const cut = line.querySelector('.line-cut')
      const hits = found[index] ?? []
      if (hits.length > 0)
        line.querySelector('.line-text')?.replaceChildren(...toNodes(markHits(parts, hits)), ...(cut ? [cut] : []))
    }
  }

  /** `note`: why there are no more matches */
  function giveUp (note: string = '') {
    if (!hasGivenUp) addItems([{ note }])
    hasGivenUp = true
  }

  function showLines () {
    cancelAnimationFrame(frame)
    frame = 0
    const { items, leftOut } = backlog.take()
    const fragment = document.createDocumentFragment()
    if (leftOut > 0)
      fragment.append(
        noteElement(`… ${formatCount(leftOut)} lines left out; the page keeps the last ${formatCount(MAX_LINES)}`)
      )
    for (const item of items) fragment.append(toElement(item))
    const surplus = list.childElementCount + fragment.childElementCount - MAX_LINES
    for (let left = surplus; left > 0 && list.firstChild; left--) list.firstElementChild?.remove()
    list.append(fragment)
    toEnd()
    reportCount()
  }

  /** Keeps the scroll position after the height of the lines has changed. */
  function settleScroll () {
    if (isFollowing) toEnd()
    else movedTo = list.scrollTop
  }

  function onScroll () {
    const isOurs = list.scrollTop === movedTo
    movedTo = -1
    if (isOurs) return
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight <= END_PX
    if (isAtEnd === isFollowing) return
    isFollowing = isAtEnd
    if (isAtEnd) showLines()
    else reportCount()
  }

  function toEnd () {
    list.scrollTop = list.scrollHeight
    movedTo = list.scrollTop
  }

  function reportCount () {
    // Another page of lines is there by now; whoever has opened this one is told in a moment.
    if (!list.isConnected) return
    onChange({ isFollowing, waiting: backlog.count, shown: list.getElementsByClassName('line').length })
  }
}

export function countLevels (list: ParentNode): { level: string, count: number }[] {
  return LEVELS.map((level) => ({ level, count: list.querySelectorAll(`[data-level=${level}]`).length }))
}

/** @returns as it was written, without what a terminal would obey */
export function rawOf (line: Element): string {
  return line instanceof HTMLElement && line.dataset.raw !== undefined
    ? line.dataset.raw
    : partsOf(line).map(({ text }) => text).join('')
}

function partsOf (line: Element): Part[] {
  return Array.from(line.querySelector('.line-text')?.childNodes ?? []).flatMap((node) => {
    const style = node instanceof Element ? node.className : ''
    return style === 'line-cut' ? [] : [{ text: node.textContent ?? '', style }]
  })
}

function isLine (item: Item): item is Entry & { text: string } {
  return 'text' in item && item.text !== undefined
}

function elementMaker ({ q, level }: Wanted): (item: Item) => HTMLElement {
  /** Whose lines the page shows: what is around a line is shown for the same hosts or apps. */
  const chosen = Array.from(new URLSearchParams(location.search)).filter(([name]) => /^(member|app)$/.test(name))
  const findHits = createHits(q !== undefined && isPattern(q) ? undefined : q)
  const others = new URLSearchParams({ ...(q !== undefined && { q }), ...(level && { level: level.join() }) })
    .toString()
  return (item) => {
    if ('note' in item) return noteElement(item.note)
    const { slot, stream, text, bytes, arrivedAt, place, member, app, hits } = item
    const whose = member ?? app
    if (text === undefined)
      return noteElement(
        `… ${formatCount(Number(bytes))} bytes of slot ${Number(slot)} left out: output is faster than this page`
      )
    const shown = shownLine(text, arrivedAt)
    const level = levelOf(text, stream)
    const line = elementOf('div', `line ${TONES[level]}${stream === 'stderr' ? ' is-stderr' : ''}`)
    line.dataset.level = level
    if (shown.raw !== shown.text) line.dataset.raw = shown.raw
    const body = elementOf('span', 'line-text')
    body.append(...toNodes(markHits(shown.parts, hits ?? findHits(shown.text))))
    const streamName = elementOf('span', 'line-stream', stream === 'stderr' ? 'err' : '')
    const around = new URLSearchParams(
      whose === undefined
        ? [['around', String(place)]]
        : [...chosen, ['around', String(arrivedAt)], ['line', `${whose}:${place}`]]
    )
    const url = `${BASE}/logs?${others}${others && '&'}${around}#log-mark`
    line.append(timeElement(arrivedAt, url), ...(whose === undefined ? [] : [elementOf('bdi', 'line-whose', whose)]),
      elementOf('span', 'line-slot', String(Number(slot))), streamName, body)
    if (shown.cutChars > 0) body.append(elementOf('span', 'line-cut', `… ${formatCount(shown.cutChars)} more`))
    return line
  }
}

function toNodes (parts: readonly Part[]) {
  return parts.map(({ text, style }) => style === '' ? text : elementOf('span', style, text))
}

function noteElement (text: string) {
  return elementOf('div', 'line-note', text)
}

/** `url`: of what is around the line */
function timeElement (iso: string | null | undefined, url: string) {
  const place = document.createElement('a')
  place.className = 'line-time'
  place.href = url
  place.tabIndex = -1
  if (!iso) {
    place.textContent = '?'
    return place
  }
  const time = document.createElement('time')
  time.dataset.clock = 'short'
  time.dateTime = time.title = iso
  time.textContent = timeText(iso)
  place.append(time)
  return place
}

let last = { iso: '', text: '' }

/** Lines that come fast have the same time, and what it takes to say it is most of what a line takes. */
function timeText (iso: string) {
  if (last.iso !== iso) last = { iso, text: formatTime(iso) }
  return last.text
}

/** `text` is never read as HTML. */
function elementOf (name: string, className: string, text: string = '') {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}
