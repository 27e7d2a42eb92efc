import { commandTexts } from './command-text.ts'
import { findElement, setText } from './elements.ts'

/** Shows the commands that do the same as a dialog, with what has been typed so far. */

document.addEventListener('input', ({ target }) => {
  const dialog = target instanceof Element && target.closest('dialog')
  if (dialog) showCommands(dialog)
})

export function showCommands (dialog: Element) {
  const place: HTMLElement | null = dialog.querySelector('[data-calls]')
  const form = dialog.querySelector('form')
  if (!place || !form) return
  const values = Object.fromEntries(Array.from(new FormData(form), ([name, value]) => [name, String(value)]))
  for (const [name, text] of Object.entries(commandTexts(JSON.parse(String(place.dataset.calls)), values))) {
    findElement(`.command:has([data-command=${name}])`, HTMLElement, place).hidden = text === null
    setText(place.querySelector(`[data-command=${name}]`), text ?? '')
  }
}
