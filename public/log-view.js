import { createBacklog } from './log-backlog.js'
import { formatTime } from './format.js'
import { formatCount, isMatch, shownLine } from './log-text.js'

/**
 * The lines on the page. New lines are added once a frame, and no more than MAX_LINES are kept. While the viewer reads
 * further up nothing moves: the newest MAX_LINES wait.
 * @typedef {import('./log-tail.js').Entry | { note: string }} Item
 * @typedef {{ isFollowing: boolean, waiting: number, shown: number, matching: number }} ViewState
 *   `waiting`: lines that came since somebody scrolled up; `matching`: of those shown
 */

export const MAX_LINES = 2000
/** Half a line at the end is the end: zoomed pages scroll by fractions. */
const END_PX = 8

/**
 * @param {HTMLElement} list with the lines that the server has put in
 * @param {(state: ViewState) => void} onChange
 * @param {{ mark?: HTMLElement | null }} [options] `mark`: what is to be seen first; the end, unless said otherwise
 */
export function createView (list, onChange, { mark = null } = {}) {
  /** @type {ReturnType<typeof createBacklog<Item>>} */
  const backlog = createBacklog(MAX_LINES)
  let isFollowing = mark === null
  let wanted = ''
  let frame = 0
  /** The scroll position that a change of the lines has set, not the viewer. */
  let movedTo = -1
  // A line without an end is sent again with its end.
  for (const line of list.querySelectorAll('[data-open]')) line.remove()
  list.addEventListener('scroll', onScroll)
  const resizes = new ResizeObserver(settleScroll)
  resizes.observe(list)
  if (mark) list.scrollTop += mark.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2
  else toEnd()

  return {
    /** @param {Item[]} items */
    add (items) {
      backlog.push(items)
      if (!isFollowing) reportCount()
      else if (frame === 0) frame = requestAnimationFrame(showLines)
    },

    /** @param {boolean} isOn */
    follow (isOn) {
      isFollowing = isOn
      if (isOn) showLines()
      else reportCount()
    },

    /** @param {string} text shows only the lines with it */
    filter (text) {
      wanted = text
      /** @type {NodeListOf<HTMLElement>} */
      const lines = list.querySelectorAll('.line')
      for (const line of lines) line.hidden = !isMatch(textOf(line), wanted)
      settleScroll()
      reportCount()
    },

    clear () {
      backlog.take()
      list.replaceChildren()
      isFollowing = true
      reportCount()
    },

    settle: settleScroll,

    report: reportCount,

    end () {
      cancelAnimationFrame(frame)
      list.removeEventListener('scroll', onScroll)
      resizes.disconnect()
    }
  }

  function showLines () {
    cancelAnimationFrame(frame)
    frame = 0
    const { items, leftOut } = backlog.take()
    const fragment = document.createDocumentFragment()
    if (leftOut > 0) fragment.append(noteElement(`… ${formatCount(leftOut)} lines left out; the page keeps the last ${formatCount(MAX_LINES)}`))
    for (const item of items) fragment.append(toElement(item, wanted))
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
    const shown = list.getElementsByClassName('line').length
    const matching = wanted === '' ? shown : list.querySelectorAll('.line:not([hidden])').length
    onChange({ isFollowing, waiting: backlog.count, shown, matching })
  }
}

/** @param {Element} line @returns {string} */
function textOf (line) {
  const nodes = Array.from(line.querySelector('.line-text')?.childNodes ?? [])
  return nodes.filter((node) => !(node instanceof Element && node.className === 'line-cut')).map(({ textContent }) => textContent).join('')
}

/** @param {Item} item @param {string} wanted */
function toElement (item, wanted) {
  if ('note' in item) return noteElement(item.note)
  const { slot, stream, text, bytes, arrivedAt } = item
  if (text === undefined) return noteElement(`… ${formatCount(Number(bytes))} bytes of slot ${Number(slot)} left out: output is faster than this page`)
  const shown = shownLine(text)
  const line = elementOf('div', `line hue-${Number(slot) % 6} ${shown.tone}${stream === 'stderr' ? ' is-stderr' : ''}`)
  const body = elementOf('span', 'line-text')
  body.append(...shown.parts.map((part) => part.style === '' ? part.text : elementOf('span', part.style, part.text)))
  const streamName = elementOf('span', 'line-stream', stream === 'stderr' ? 'err' : '')
  line.append(timeElement(arrivedAt), elementOf('span', 'line-slot', String(Number(slot))), streamName, body)
  if (shown.cutChars > 0) body.append(elementOf('span', 'line-cut', `… ${formatCount(shown.cutChars)} more`))
  line.hidden = !isMatch(shown.text, wanted)
  return line
}

/** @param {string} text */
function noteElement (text) {
  return elementOf('div', 'line-note', text)
}

/** @param {string | null | undefined} iso */
function timeElement (iso) {
  const place = elementOf('span', 'line-time')
  if (!iso) return place
  const time = document.createElement('time')
  time.dataset.clock = 'short'
  time.dateTime = time.title = iso
  time.textContent = timeText(iso)
  place.append(time)
  return place
}

let last = { iso: '', text: '' }

/** Lines that come fast have the same time, and what it takes to say it is most of what a line takes. @param {string} iso */
function timeText (iso) {
  if (last.iso !== iso) last = { iso, text: formatTime(iso) }
  return last.text
}

/** `text` is never read as HTML. @param {string} name @param {string} className @param {string} [text] */
function elementOf (name, className, text = '') {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}
