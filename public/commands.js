import { commandTexts } from './command-text.js'

/** Under the button of a dialog: the same as a command, with what has been typed so far. */

document.addEventListener('input', ({ target }) => {
  const dialog = target instanceof Element && target.closest('dialog')
  if (dialog) showCommands(dialog)
})

/** @param {Element} dialog */
export function showCommands (dialog) {
  const place = /** @type {HTMLElement | null} */ (dialog.querySelector('[data-calls]'))
  const form = dialog.querySelector('form')
  if (!place || !form) return
  const values = Object.fromEntries(Array.from(new FormData(form), ([name, value]) => [name, String(value)]))
  for (const [name, text] of Object.entries(commandTexts(JSON.parse(String(place.dataset.calls)), values))) {
    const code = /** @type {HTMLElement} */ (place.querySelector(`[data-command=${name}]`))
    const block = /** @type {HTMLElement} */ (code.closest('.command'))
    block.hidden = text === null
    // An equal text is not set again, so that a selection in it survives.
    if (code.textContent !== text) code.textContent = text
  }
}
