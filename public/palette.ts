import { BASE } from './base.ts'
import { byId, findElement } from './elements.ts'
import { fuzzyScore } from './fuzzy.ts'
import { fetchHtml } from './more-dialogs.ts'

/**
 * The command palette: one field that finds every place and every action. Its list comes from the server, as of now.
 * Its dialog has to be in the page before this is loaded.
 */

const { htmx } = window
const palette = findElement('#palette', HTMLDialogElement)
const query = findElement('#palette-query', HTMLInputElement)
const list = byId('palette-items')
const state = byId('palette-state')

/** as they came */
let items: HTMLElement[] = []

const MOVES: Readonly<Record<string, (place: number, count: number) => number>> = Object.freeze({
  ArrowDown: (place, count) => (place + 1) % count,
  ArrowUp: (place, count) => (place - 1 + count) % count,
  PageDown: (place, count) => Math.min(count - 1, place + 8),
  PageUp: (place) => Math.max(0, place - 8)
})

query.addEventListener('input', findItems)
query.addEventListener('keydown', onKey)
// Closes the palette before the click opens another dialog, as two open ones would conflict.
list.addEventListener('click', ({ target }) => {
  const item: HTMLElement | null = target instanceof Element ? target.closest('[role=option]') : null
  if (!item || item.getAttribute('aria-disabled') === 'true') return
  palette.close()
  if (item.dataset.presses) byId(`top-${item.dataset.presses}`).click()
})

export async function togglePalette () {
  if (palette.open) return palette.close()
  if (document.querySelector('dialog[open]')) return
  // The list is loaded each time, as an action of the last time may be refused now.
  items = []
  list.replaceChildren()
  query.value = ''
  state.textContent = 'Loading …'
  palette.showModal()
  try {
    list.innerHTML = await fetchHtml('/palette')
    htmx.process(list)
    items = itemsIn(list)
    findItems()
  } catch {
    state.textContent = 'The master did not answer.'
  }
}

function findItems () {
  const words = query.value.trim()
  const found = words === '' ? items : [...rankItems(words), ...logSearch(words)]
  list.replaceChildren(...found)
  list.scrollTop = 0
  chooseItem(found[0])
  if (items.length > 0) state.textContent = found.length > 0 ? '' : `No match for “${words}”.`
}

/** Whatever was typed may be a request id. Returns none where there are no logs. */
function logSearch (words: string): HTMLElement[] {
  const item = items.find((each) => each.getAttribute('href') === `${BASE}/logs`)?.cloneNode(true)
  if (!(item instanceof HTMLAnchorElement)) return []
  item.id = 'palette-logs'
  item.href = `${BASE}/logs?${new URLSearchParams({ q: words })}`
  for (const [part, text] of [['label', `Search the logs for “${words}”`], ['hint', ''], ['group', 'Logs']]) {
    const place = item.querySelector(`.palette-${part}`)
    if (place) place.textContent = text
  }
  return [item]
}

function itemsIn (place: ParentNode) {
  const found: NodeListOf<HTMLElement> = place.querySelectorAll('[role=option]')
  return Array.from(found)
}

function rankItems (words: string) {
  return items.map((item) => ({ item, score: scoreOf(words, item) })).filter(({ score }) => score !== null).sort((a,
    b) => Number(b.score) - Number(a.score)
  ).map(({ item }) => item)
}

/** A match in the label counts more than one in the hint. */
function scoreOf (words: string, item: HTMLElement) {
  const label = fuzzyScore(words, item.querySelector('.palette-label')?.textContent ?? '')
  return label === null ? fuzzyScore(words, item.textContent ?? '') : label + 20
}

function onKey (event: KeyboardEvent) {
  const found = itemsIn(list)
  const chosen = found.findIndex((item) => item.getAttribute('aria-selected') === 'true')
  if (event.key === 'Enter' && !event.isComposing) {
    event.preventDefault()
    return found[chosen]?.click()
  }
  if (!Object.hasOwn(MOVES, event.key) || found.length === 0) return
  event.preventDefault()
  chooseItem(found[MOVES[event.key](chosen, found.length)])
}

/** The focus stays in the field; assistive technology is told which one is meant. */
function chooseItem (item: HTMLElement | undefined) {
  for (const other of list.querySelectorAll('[aria-selected=true]')) other.setAttribute('aria-selected', 'false')
  item?.setAttribute('aria-selected', 'true')
  item?.scrollIntoView({ block: 'nearest' })
  query.setAttribute('aria-activedescendant', item?.id ?? '')
}
