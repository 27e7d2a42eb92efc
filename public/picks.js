/**
 * Selects rows for one action: counts them, and selects all at once. The form has `data-picks`; each row has a checkbox of
 * that form.
 */

const form = /** @type {HTMLFormElement} */ (document.querySelector('[data-picks]'))
const all = /** @type {HTMLInputElement} */ (form.querySelector('[data-picks-all]'))
const shown = /** @type {HTMLOutputElement} */ (form.querySelector('[data-picks-count]'))

document.addEventListener('change', ({ target }) => {
  if (target === all) for (const pick of pickBoxes()) pick.checked = all.checked
  showCount()
})
// Rows come and go; a row that is gone is no longer selected.
document.addEventListener('htmx:after:swap', showCount)
document.addEventListener('htmx:after:request', (event) => {
  const { sourceElement, response } = /** @type {CustomEvent} */ (event).detail.ctx ?? {}
  if (sourceElement !== form || !response || response.status >= 400) return
  for (const pick of pickBoxes()) pick.checked = false
  showCount()
})
showCount()

function pickBoxes () {
  return Array.from(form.elements)
    .filter((element) => element instanceof HTMLInputElement && element.name === 'crash')
    .map((element) => /** @type {HTMLInputElement} */ (element))
}

function showCount () {
  const chosen = pickBoxes().filter(({ checked }) => checked).length
  all.checked = chosen > 0 && chosen === pickBoxes().length
  all.indeterminate = chosen > 0 && !all.checked
  shown.value = chosen === 0 ? '' : `${chosen} selected`
  form.dataset.picks = chosen === 0 ? 'none' : 'some'
}
