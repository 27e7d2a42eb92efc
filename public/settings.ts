import { findElement, setText } from './elements.ts'
import { saidValue } from './setting-value.ts'

/** The dialog that changes a setting: says a number of milliseconds or bytes as people do, while it is typed. */

const dialog = findElement('#dialog-setting', HTMLDialogElement)
const field = findElement('input[name=value]', HTMLInputElement, dialog)
const unit = findElement('output[name=unit]', HTMLOutputElement, dialog)

dialog.addEventListener('input', sayValue)
// The dialog is filled before its field gets the focus.
dialog.addEventListener('focusin', sayValue)

function sayValue () {
  const text = field.value.trim()
  const said = /^\d+$/.test(text) && (unit.value === 'ms' || unit.value === 'bytes')
    ? saidValue(Number(text), unit.value)
    : null
  setText(dialog.querySelector('#dialog-setting-said'), said === null ? '' : `= ${said}`)
}
