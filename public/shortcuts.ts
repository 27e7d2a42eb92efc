import { BASE, HOME, IS_HOST } from './base.ts'
import { openDialog } from './dialogs.ts'
import { dialogOf } from './more-dialogs.ts'
import { HOST_PLACES, PLACES } from './places.ts'
import { preference } from './preferences.ts'
import { showToast } from './toasts.ts'

/** Keyboard shortcuts, which do nothing while the viewer types in a field. */

const SEQUENCE_MS = 1500
const FIELDS = 'input, textarea, select, [contenteditable], [role=application]'
/** Elements that `j` and `k` go through, in the order of the page. */
const ROWS =
  'main :is(.row-link, .feed-text, .setting-action button, .alert-table a, .access-list button, .logs a.line-time)'

const KEYS: Readonly<Record<string, () => unknown>> = Object.freeze({ '?': () => openDialog('dialog-shortcuts'),
  '/': focusSearch, j: () => goOn(1), k: () => goOn(-1) })

/** The time at which `g` was pressed. */
let leaderAt = -Infinity

export function startShortcuts () {
  document.addEventListener('keydown', onKey)
  document.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('[data-palette]')) openPalette()
  })
}

function onKey (event: KeyboardEvent) {
  if (event.defaultPrevented || event.isComposing) return
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault()
    return openPalette()
  }
  if (event.key === 'Escape') leaveSearch(event)
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector('dialog[open]'))
    return
  if (preference('keys') === 'off') return
  const isSecond = event.timeStamp - leaderAt < SEQUENCE_MS
  leaderAt = event.key === 'g' && !isSecond ? event.timeStamp : -Infinity
  const action = isSecond ? wayTo(event.key) : Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null
  if (!action) return
  event.preventDefault()
  action()
}

/** Keeps what was searched for, which browsers would empty: the other keys then go through what was found. */
function leaveSearch (event: KeyboardEvent) {
  if (!(event.target instanceof HTMLInputElement) || !event.target.matches('main input[type=search]')) return
  event.preventDefault()
  event.target.blur()
}

function isTyping ({ target }: KeyboardEvent) {
  return target instanceof Element && target.closest(FIELDS) !== null
}

/** `key`: after `g` */
function wayTo (key: string) {
  // On the pages of an app, this key leads to the list of all apps.
  if (key === 'a' && HOME !== BASE) return () => location.assign(`${HOME}/`)
  const place = (IS_HOST ? HOST_PLACES : PLACES).find((each) => each.key === key)
  return place && (() => location.assign(BASE + place.href))
}

/** Loads the palette first, as most pages never show it. */
async function openPalette () {
  try {
    await dialogOf('palette')
    const { togglePalette } = await import('./palette.ts')
    await togglePalette()
  } catch {
    showToast('The master did not answer.')
  }
}

/** Focuses the search field of the page, or opens the palette if there is none. */
function focusSearch () {
  const fields: NodeListOf<HTMLInputElement> = document.querySelectorAll('main input[type=search]')
  const field = Array.from(fields).find((each) => each.checkVisibility())
  if (!field) return openPalette()
  field.focus()
  field.select()
}

function goOn (step: 1 | -1) {
  const all: NodeListOf<HTMLElement> = document.querySelectorAll(ROWS)
  const rows = Array.from(all).filter((each) => each.checkVisibility())
  if (rows.length === 0) return
  const place = rows.findIndex((each) => each === document.activeElement)
  const next = place === -1 ? (step === 1 ? 0 : rows.length - 1) : place + step
  rows[next]?.focus()
}
