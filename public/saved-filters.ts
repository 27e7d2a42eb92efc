import { byId, findElement } from './elements.ts'

/** Filters with a name, kept in this browser as the query of a URL. */
type Saved = { name: string, query: string }

const KEY = 'clusterdeck-history-filters'
const MAX_SAVED = 30
const MAX_NAME_CHARS = 40
const MAX_QUERY_CHARS = 2000
/** Parameters for the place in a list, which are no filters. */
const PLACES = ['cursor', 'trail']

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null
  if (button?.id === 'save-open') openForm(true)
  if (button?.id === 'save-cancel') openForm(false)
  if (button?.dataset.saved !== undefined) removeFilter(button.dataset.saved)
})
document.addEventListener('submit', (event) => {
  if (!(event.target instanceof Element && event.target.id === 'save-form')) return
  event.preventDefault()
  const name = nameField().value.trim().slice(0, MAX_NAME_CHARS)
  if (name === '') return
  writeSaved(
    [...readSaved().filter((saved) => saved.name !== name), { name, query: queryOf(location.search) }].slice(-MAX_SAVED)
  )
  openForm(false)
})
document.addEventListener('keydown', ({ key, target }) => {
  if (key === 'Escape' && target === nameField()) openForm(false)
})
// Another tab has changed the saved filters.
addEventListener('storage', ({ key }) => {
  if (key === KEY) showSavedFilters()
})

/** Shows a link for each saved filter, and the button that saves the current ones. */
export function showSavedFilters () {
  const list = document.getElementById('saved-list')
  if (!list) return
  const saved = readSaved()
  const here = queryOf(location.search)
  list.replaceChildren(...saved.map((each) => toItem(each, each.query === here)))
  const opener = document.getElementById('save-open')
  if (opener) opener.hidden = here === '' || saved.some(({ query }) => query === here)
  byId('saved-title').hidden = saved.length === 0
  byId('saved-filters').hidden = saved.length === 0 && byId('save-form').hidden
}

function toItem ({ name, query }: Saved, isCurrent: boolean) {
  const item = document.importNode(findElement('#saved-item', HTMLTemplateElement).content, true)
  const link = findElement('a', HTMLAnchorElement, item)
  link.textContent = name
  // The link stays on this page, whatever the storage holds.
  link.href = `${location.pathname}?${new URLSearchParams(query)}`
  if (isCurrent) link.setAttribute('aria-current', 'true')
  const button = findElement('button', HTMLButtonElement, item)
  button.dataset.saved = name
  button.setAttribute('aria-label', `Remove the saved filters ${name}`)
  return item
}

function openForm (isOpen: boolean) {
  byId('save-form').hidden = !isOpen
  const opener = document.getElementById('save-open')
  opener?.setAttribute('aria-expanded', String(isOpen))
  showSavedFilters()
  if (!isOpen) return opener?.focus()
  nameField().value = ''
  nameField().focus()
}

function removeFilter (name: string) {
  writeSaved(readSaved().filter((saved) => saved.name !== name))
  showSavedFilters()
  document.getElementById('filter-q')?.focus()
}

function readSaved (): Saved[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]').filter(isSaved).slice(-MAX_SAVED)
  } catch {
    // Storage may be forbidden, or hold data of another page of this address.
    return []
  }
}

function isSaved ({ name, query }: { name?: unknown, query?: unknown }) {
  return typeof name === 'string' && typeof query === 'string' && query.length <= MAX_QUERY_CHARS
}

function writeSaved (saved: Saved[]) {
  try {
    localStorage.setItem(KEY, JSON.stringify(saved))
  } catch {}
}

function queryOf (search: string) {
  const params = new URLSearchParams(search)
  for (const name of PLACES) params.delete(name)
  return String(params)
}

function nameField () {
  return findElement('#save-name', HTMLInputElement)
}
