import type { Frame } from './flame-tree.ts'

/**
 * Draws a tree of calls: as wide as its time, callers above. A click on a frame, or Enter, shows it alone, with its
 * callers.
 */

const ROW_PX = 24
/** Rows of a profile that has few of them grow up to this, to fill their place. */
const MAX_ROW_PX = 40
/** A text of this size stands so far below the middle of its row. */
const BELOW_MIDDLE_PX = 4
const MIN_PX = 1
const PADDING_PX = 5
const SVG = 'http://www.w3.org/2000/svg'

export function createFlameGraph ({ place, root, onPoint, onFocus }: {
  place: HTMLElement,
  root: Frame,
  /** what the pointer or the keys are on */
  onPoint: (frame: Frame | null) => void,
  /** what is shown alone */
  onFocus: (frame: Frame) => void
}) {
  const svg = document.createElementNS(SVG, 'svg')
  svg.classList.add('flame-graph')
  svg.setAttribute('aria-hidden', 'true')
  place.replaceChildren(svg)
  const charPx = measureText(svg)
  /** as drawn */
  let drawn: Box[] = []
  let focus = root
  let rowPx = ROW_PX
  /** What the keys are on. */
  let chosen: Frame | null = null
  let isMarked: (frame: Frame) => boolean = () => false

  svg.addEventListener('click', ({ target }) => {
    const frame = frameAt(target)
    if (frame) showFrame(frame)
  })
  svg.addEventListener('pointerover', ({ target }) => onPoint(frameAt(target)))
  svg.addEventListener('pointerleave', () => onPoint(chosen))
  place.addEventListener('keydown', onKey)
  place.addEventListener('focus', () => {
    if (chosen === null && place.matches(':focus-visible')) chooseFrame(focus)
  })
  let width = 0
  new ResizeObserver(() => {
    if (place.clientWidth !== width) drawFrames()
  }).observe(place)
  drawFrames()

  return {
    show: showFrame,

    mark (isWanted: (frame: Frame) => boolean) {
      isMarked = isWanted
      drawFrames()
    },

    /** Goes to the next marked frame. */
    step (by: 1 | -1) {
      const marked = drawn.filter(({ frame }) => isMarked(frame)).sort((a, b) => a.row - b.row || a.x - b.x)
      const at = marked.findIndex(({ frame }) => frame === chosen)
      const next = marked.at(at < 0 ? (by > 0 ? 0 : -1) : (at + by) % marked.length)
      if (next) chooseFrame(next.frame)
    }
  }

  function onKey (event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return
    const frame = chosen ?? focus
    const next = nextOf(frame, event.key)
    if (next) chooseFrame(next)
    else if (event.key === 'Enter' || event.key === ' ') showFrame(frame)
    else if (event.key === 'Escape' && focus !== root) showFrame(root)
    else if (!event.key.startsWith('Arrow')) return
    event.preventDefault()
  }

  /** @returns as drawn: the caller above, the longest below, the ones beside it */
  function nextOf (frame: Frame, key: string): Frame | null | undefined {
    const shown = new Set(drawn.map((box) => box.frame))
    if (key === 'Home') return root
    if (key === 'ArrowUp') return frame.parent
    if (key === 'ArrowDown') return frame.children.find((child) => shown.has(child))
    const beside = (frame.parent?.children ?? []).filter((child) => shown.has(child))
    if (key === 'ArrowRight') return beside[beside.indexOf(frame) + 1]
    if (key === 'ArrowLeft') return beside[beside.indexOf(frame) - 1]
    return null
  }

  function chooseFrame (frame: Frame) {
    chosen = frame
    drawFrames()
    const box = drawn.find((each) => each.frame === frame)
    if (box) showRow(place, box.row, rowPx)
    onPoint(frame)
  }

  function showFrame (frame: Frame) {
    focus = frame
    if (chosen) chosen = frame
    place.scrollTop = 0
    drawFrames()
    onFocus(frame)
  }

  function drawFrames () {
    width = place.clientWidth
    drawn = layOut(focus, width)
    const rows = drawn.reduce((most, { row }) => Math.max(most, row + 1), 1)
    rowPx = Math.min(MAX_ROW_PX, Math.max(ROW_PX, Math.floor(place.clientHeight / rows)))
    const height = rows * rowPx
    svg.setAttribute('width', String(width))
    svg.setAttribute('height', String(height))
    svg.replaceChildren(...drawn.map((box, index) => toElement(box, index)))
  }

  function frameAt (target: EventTarget | null): Frame | null {
    const index = target instanceof Element ? target.closest('g')?.dataset.index : undefined
    return index === undefined ? null : drawn[Number(index)].frame
  }

  function toElement ({ frame, x, width, row, isCaller }: Box, index: number) {
    const group = document.createElementNS(SVG, 'g')
    group.setAttribute('class',
      `flame-frame owner-${frame.owner}${isCaller ? ' is-caller' : ''}${isMarked(frame) ? ' is-marked' : ''}${
        frame === chosen ? ' is-chosen' : ''
      }`)
    group.dataset.index = String(index)
    const rectangle = document.createElementNS(SVG, 'rect')
    for (const [name, value] of Object.entries({ x, y: row * rowPx, width: Math.max(MIN_PX, width - 1),
      height: rowPx - 1, rx: 2 })) rectangle.setAttribute(name, String(value))
    group.append(rectangle)
    const chars = Math.floor((width - 2 * PADDING_PX) / charPx)
    if (chars >= 3) {
      const text = document.createElementNS(SVG, 'text')
      text.setAttribute('x', String(x + PADDING_PX))
      text.setAttribute('y', String((row + 0.5) * rowPx + BELOW_MIDDLE_PX))
      text.textContent = frame.name.length > chars ? `${frame.name.slice(0, chars - 1)}…` : frame.name
      const file = frame.place.slice(frame.place.lastIndexOf('/') + 1)
      if (file !== '' && frame.name.length + file.length + 2 <= chars) text.append(placeOf(file))
      group.append(text)
    }
    return group
  }
}

/** `file`: with its line */
function placeOf (file: string) {
  const made = document.createElementNS(SVG, 'tspan')
  made.setAttribute('class', 'flame-frame-place')
  made.textContent = `  ${file}`
  return made
}

/** `row`: is scrolled into it */
function showRow (place: HTMLElement, row: number, rowPx: number) {
  const top = row * rowPx
  if (top < place.scrollTop) place.scrollTop = top
  else if (top + rowPx > place.scrollTop + place.clientHeight) place.scrollTop = top + rowPx - place.clientHeight
}

type Box = { frame: Frame, x: number, width: number, row: number, isCaller: boolean }

function layOut (focus: Frame, width: number): Box[] {
  const boxes: Box[] = []
  for (let caller = focus.parent; caller; caller = caller.parent)
    boxes.unshift({ frame: caller, x: 0, width, row: 0, isCaller: true })
  boxes.forEach((box, row) => {
    box.row = row
  })
  const waiting = [{ frame: focus, x: 0, width, row: boxes.length, isCaller: false }]
  for (let box = waiting.pop(); box; box = waiting.pop()) {
    boxes.push(box)
    let { x } = box
    for (const child of box.frame.children) {
      const childWidth = box.frame.totalMs > 0 ? box.width * child.totalMs / box.frame.totalMs : 0
      if (childWidth >= MIN_PX) waiting.push({ frame: child, x, width: childWidth, row: box.row + 1, isCaller: false })
      x += childWidth
    }
  }
  return boxes
}

/** @returns how wide a character is */
function measureText (svg: SVGElement): number {
  const text = document.createElementNS(SVG, 'text')
  text.textContent = 'm'.repeat(20)
  svg.append(text)
  return text.getComputedTextLength() / 20 || 7
}
