import { findElement, setText } from './elements.ts'

/**
 * Selects rows for one action: counts them, and selects all at once. The form has `data-picks`; each row has a checkbox
 * of that form, in a `.pick`. A dialog may stand between the choice and the action, and names what is chosen.
 */

const form = findElement('[data-picks]', HTMLFormElement)
const all = findElement('[data-picks-all]', HTMLInputElement, form)
const shown = findElement('[data-picks-count]', HTMLOutputElement, form)

document.addEventListener('change', ({ target }) => {
  if (target === all) { for (const pick of pickBoxes()) pick.checked = all.checked }
  showCount()
})
// Rows come and go; a row that is gone is no longer selected.
document.addEventListener('htmx:after:swap', showCount)
document.addEventListener('htmx:after:request', ({ detail: { ctx: { sourceElement, response } } }) => {
  if (sourceElement !== form || !response || response.status >= 400) return
  for (const pick of pickBoxes()) pick.checked = false
  const dialog: HTMLDialogElement | null = document.querySelector('dialog[open]')
  dialog?.close()
  showCount()
})
showCount()

function pickBoxes () {
  return Array.from(form.elements).filter((element) => element instanceof HTMLInputElement).filter((element) =>
    element.closest('.pick')
  )
}

function showCount () {
  const picked = pickBoxes().filter(({ checked }) => checked)
  const chosen = picked.length
  all.checked = chosen > 0 && chosen === pickBoxes().length
  all.indeterminate = chosen > 0 && !all.checked
  shown.value = chosen === 0 ? '' : `${chosen} selected`
  for (const place of document.querySelectorAll('[data-picks-names]'))
    setText(place, listOf(picked.map(({ value }) => value)))
  form.dataset.picks = chosen === 0 ? 'none' : 'some'
}

function listOf (names: string[]) {
  return names.length > 12 ? `${names.slice(0, 10).join(', ')} and ${names.length - 10} more` : names.join(', ')
}
