import { findElement, setText } from './elements.ts'
import { numberWithUnit, saidValue } from './setting-value.ts'
import type { Unit } from '../server/config/units.ts'

/** The dialog that changes a setting: says a number as people do, while it is typed. */

const dialog = findElement('#dialog-setting', HTMLDialogElement)
const field = findElement('input[name=value]', HTMLInputElement, dialog)
const [unit, zero] = ['unit', 'zero'].map((name) => findElement(`output[name=${name}]`, HTMLOutputElement, dialog))

dialog.addEventListener('input', sayValue)
// The dialog is filled before its field gets the focus.
dialog.addEventListener('focusin', sayValue)

function sayValue () {
  const text = field.value.trim()
  const unitOf = (unit.value || null) as Unit | null
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : numberWithUnit(text, unitOf)
  const said = number === null ? null : saidValue(number, unitOf, zero.value || null)
  setText(dialog.querySelector('#dialog-setting-said'), said === null ? '' : `= ${said}`)
}
