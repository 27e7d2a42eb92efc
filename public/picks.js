import { findElement } from './elements.js'

/**
 * Selects rows for one action: counts them, and selects all at once. The form has `data-picks`; each row has a checkbox of
 * that form.
 */

const form = findElement('[data-picks]', HTMLFormElement)
const all = findElement('[data-picks-all]', HTMLInputElement, form)
const shown = findElement('[data-picks-count]', HTMLOutputElement, form)

document.addEventListener('change', ({ target }) => {
  if (target === all) for (const pick of pickBoxes()) pick.checked = all.checked
  showCount()
})
// Rows come and go; a row that is gone is no longer selected.
document.addEventListener('htmx:after:swap', showCount)
document.addEventListener('htmx:after:request', ({ detail: { ctx: { sourceElement, response } } }) => {
  if (sourceElement !== form || !response || response.status >= 400) return
  for (const pick of pickBoxes()) pick.checked = false
  showCount()
})
showCount()

function pickBoxes () {
  return Array.from(form.elements).filter((element) => element instanceof HTMLInputElement).filter(({ name }) => name === 'crash')
}

function showCount () {
  const chosen = pickBoxes().filter(({ checked }) => checked).length
  all.checked = chosen > 0 && chosen === pickBoxes().length
  all.indeterminate = chosen > 0 && !all.checked
  shown.value = chosen === 0 ? '' : `${chosen} selected`
  form.dataset.picks = chosen === 0 ? 'none' : 'some'
}
