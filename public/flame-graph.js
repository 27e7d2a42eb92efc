/**
 * Draws a tree of calls: as wide as its time, callers above. A click on a frame shows it alone, with its callers.
 * @typedef {import('./flame-tree.js').Frame} Frame
 */

const ROW_PX = 20
const MIN_PX = 1
const PADDING_PX = 5
const SVG = 'http://www.w3.org/2000/svg'

/**
 * @param {object} parts
 * @param {HTMLElement} parts.place
 * @param {Frame} parts.root
 * @param {(frame: Frame | null) => void} parts.onPoint what the pointer is on
 * @param {(frame: Frame) => void} parts.onFocus what is shown alone
 */
export function createFlameGraph ({ place, root, onPoint, onFocus }) {
  const svg = document.createElementNS(SVG, 'svg')
  svg.classList.add('flame-graph')
  svg.setAttribute('aria-hidden', 'true')
  place.replaceChildren(svg)
  const charPx = measureText(svg)
  /** @type {Frame[]} as drawn */
  let drawn = []
  let focus = root
  /** @type {(frame: Frame) => boolean} */
  let isMarked = () => false

  svg.addEventListener('click', ({ target }) => {
    const frame = frameAt(target)
    if (frame) showFrame(frame)
  })
  svg.addEventListener('pointerover', ({ target }) => onPoint(frameAt(target)))
  svg.addEventListener('pointerleave', () => onPoint(null))
  let width = 0
  new ResizeObserver(() => { if (place.clientWidth !== width) drawFrames() }).observe(place)
  drawFrames()

  return {
    show: showFrame,

    /** @param {(frame: Frame) => boolean} isWanted */
    mark (isWanted) {
      isMarked = isWanted
      drawFrames()
    }
  }

  /** @param {Frame} frame */
  function showFrame (frame) {
    focus = frame
    place.scrollTop = 0
    drawFrames()
    onFocus(frame)
  }

  function drawFrames () {
    width = place.clientWidth
    const boxes = layOut(focus, width)
    drawn = boxes.map(({ frame }) => frame)
    const height = boxes.reduce((most, { row }) => Math.max(most, row + 1), 0) * ROW_PX
    svg.setAttribute('width', String(width))
    svg.setAttribute('height', String(height))
    svg.replaceChildren(...boxes.map((box, index) => toElement(box, index)))
  }

  /** @param {EventTarget | null} target @returns {Frame | null} */
  function frameAt (target) {
    const index = target instanceof Element ? target.closest('g')?.dataset.index : undefined
    return index === undefined ? null : drawn[Number(index)]
  }

  /** @param {Box} box @param {number} index */
  function toElement ({ frame, x, width, row, isCaller }, index) {
    const group = document.createElementNS(SVG, 'g')
    group.setAttribute('class', `flame-frame owner-${frame.owner}${isCaller ? ' is-caller' : ''}${isMarked(frame) ? ' is-marked' : ''}`)
    group.dataset.index = String(index)
    const rectangle = document.createElementNS(SVG, 'rect')
    for (const [name, value] of Object.entries({
      x,
      y: row * ROW_PX,
      width: Math.max(MIN_PX, width - 1),
      height: ROW_PX - 1,
      rx: 2
    })) rectangle.setAttribute(name, String(value))
    group.append(rectangle)
    const chars = Math.floor((width - 2 * PADDING_PX) / charPx)
    if (chars >= 3) {
      const text = document.createElementNS(SVG, 'text')
      text.setAttribute('x', String(x + PADDING_PX))
      text.setAttribute('y', String(row * ROW_PX + 14))
      text.textContent = frame.name.length > chars ? `${frame.name.slice(0, chars - 1)}…` : frame.name
      group.append(text)
    }
    return group
  }
}

/** @typedef {{ frame: Frame, x: number, width: number, row: number, isCaller: boolean }} Box */

/** @param {Frame} focus @param {number} width @returns {Box[]} */
function layOut (focus, width) {
  /** @type {Box[]} */
  const boxes = []
  for (let caller = focus.parent; caller; caller = caller.parent) boxes.unshift({ frame: caller, x: 0, width, row: 0, isCaller: true })
  boxes.forEach((box, row) => { box.row = row })
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

/** @param {SVGElement} svg @returns {number} how wide a character is */
function measureText (svg) {
  const text = document.createElementNS(SVG, 'text')
  text.textContent = 'm'.repeat(20)
  svg.append(text)
  return text.getComputedTextLength() / 20 || 7
}
