import { BASE } from './base.ts'
import { byId, findElement, setText } from './elements.ts'
import { createFlameGraph } from './flame-graph.ts'
import { toFlameTree, type Frame, type HotFunction } from './flame-tree.ts'
import { formatExactDuration, formatPercent } from './format.ts'

/** A CPU profile on the page of its worker: the graph, a search in it, and its functions as a table. */

const MAX_FUNCTIONS = 50
/** A larger profile would keep the browser busy for too long. */
const MAX_BYTES = 200 * 1024 * 1024

const section = byId('flame')

startFlame().catch((error) =>
  setText(byId('flame-status'), error instanceof TypeError || error instanceof SyntaxError
    ? `The profile cannot be shown: ${error.message}`
    : error.message)
)

async function startFlame () {
  const tree = toFlameTree(await loadProfile(), { folder: section.dataset.folder })
  const { root, functions, idleMs, leftOut } = tree
  if (root.totalMs === 0)
    return setText(byId('flame-status'), `Nothing ran: the worker was idle for ${formatExactDuration(idleMs)}.`)
  const allMs = root.totalMs + idleMs
  const busy = `Busy for ${milliseconds(root.totalMs)} of ${milliseconds(allMs)} (${
    formatPercent(100 * root.totalMs / allMs)
  }).`
  const hidden = leftOut > 0 ? ` ${leftOut} frames too short to see are left out.` : ''
  const summary =
    `${busy} Width is time, callers are above. Click a frame to zoom into it; the arrow keys, Enter and Escape do the same.${hidden}`
  for (const id of ['flame-bar', 'flame-columns']) byId(id).hidden = false
  setText(byId('flame-status'), summary)
  const search = findElement('#flame-search', HTMLInputElement)
  const reset = byId('flame-reset')
  const graph = createFlameGraph({ place: byId('flame-place'), root, onPoint: (frame) => showDetail(frame ?? shown),
    onFocus: focusFrame })
  let shown = root
  showDetail(root)

  byId('flame-functions').replaceChildren(
    ...functions.slice(0, MAX_FUNCTIONS).map((each) => toRow(each, () => pickFunction(each.key)))
  )
  search.addEventListener('input', () => {
    pressButton(null)
    const wanted = search.value.trim().toLowerCase()
    markRows((frame) => wanted !== '' && `${frame.name} ${frame.place}`.toLowerCase().includes(wanted))
    if (wanted === '') setText(byId('flame-status'), summary)
  })
  search.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    graph.step(event.shiftKey ? -1 : 1)
  })
  reset.addEventListener('click', () => graph.show(root))
  // Somebody has asked for it on a page that has more.
  if ('opened' in section.dataset) section.scrollIntoView({ block: 'nearest' })

  function focusFrame (frame: Frame) {
    shown = frame
    reset.setAttribute('aria-disabled', String(frame === root))
    showDetail(frame)
  }

  /** `key`: of the function that was clicked in the table */
  function pickFunction (key: string) {
    const isChosen = pressButton(key)
    search.value = ''
    markRows((frame) => isChosen && frame.key === key)
    if (!isChosen) setText(byId('flame-status'), summary)
  }

  function markRows (isMarked: (frame: Frame) => boolean) {
    graph.mark(isMarked)
    let ms = 0
    let count = 0
    const waiting: { frame: Frame, isCounted: boolean }[] = [{ frame: root, isCounted: false }]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const isHit = isMarked(next.frame)
      if (isHit) count++
      // Frames below a marked one are already in its time.
      if (isHit && !next.isCounted) ms += next.frame.totalMs
      for (const frame of next.frame.children) waiting.push({ frame, isCounted: next.isCounted || isHit })
    }
    setText(byId('flame-status'),
      `${count} ${count === 1 ? 'frame' : 'frames'} marked: ${milliseconds(ms)}, ${
        formatPercent(100 * ms / root.totalMs)
      } of the busy time.`)
  }

  function showDetail ({ name, path, selfMs, totalMs, parent }: Frame) {
    const shareOf = (ms: number) => `${milliseconds(ms)} (${formatPercent(100 * ms / root.totalMs)})`
    setText(byId('flame-name'), name)
    setText(byId('flame-path'), path)
    setText(byId('flame-times'),
      `total ${shareOf(totalMs)} · self ${shareOf(selfMs)}${
        parent && parent !== root ? ` · called by ${parent.name}` : ''
      }`)
  }
}

async function loadProfile (): Promise<unknown> {
  const response = await fetch(BASE + section.dataset.file, {
    headers: { Accept: 'application/octet-stream, application/problem+json' }
  })
  if (!response.ok) throw new Error((await response.json()).detail)
  if (Number(response.headers.get('Content-Length')) > MAX_BYTES)
    throw new Error('The profile is too large to be shown here: download it.')
  return await response.json()
}

function toRow ({ key, name, place, path, owner, selfMs, totalMs }: HotFunction, onPick: () => void) {
  const row = document.createElement('tr')
  const head = document.createElement('th')
  head.scope = 'row'
  const button = document.createElement('button')
  button.type = 'button'
  button.className = `flame-function owner-${owner}`
  button.dataset.key = key
  button.title = path
  button.setAttribute('aria-pressed', 'false')
  button.append(lineOf('flame-name', name), lineOf('fine', place))
  button.addEventListener('click', onPick)
  head.append(button)
  row.append(head, ...[selfMs, totalMs].map((ms) => {
    const cell = document.createElement('td')
    cell.className = 'num'
    cell.textContent = milliseconds(ms)
    return cell
  }))
  return row
}

/** `text`: the app's */
function lineOf (className: string, text: string) {
  const made = document.createElement('bdi')
  made.className = className
  made.textContent = text
  return made
}

/** Tells whether its function is chosen now */
function pressButton (key: string | null): boolean {
  let isChosen = false
  for (const button of byId('flame-functions').querySelectorAll('button')) {
    const isOn = button.dataset.key === key && button.getAttribute('aria-pressed') !== 'true'
    isChosen ||= isOn
    button.setAttribute('aria-pressed', String(isOn))
  }
  return isChosen
}

function milliseconds (ms: number) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : formatExactDuration(ms)
}
