import { fillTemplate, templateFlaw } from './alert-template.ts'
import { findElement, setText } from './elements.ts'

/** The form of a webhook: shows what its body comes to, or what is wrong with it, while it is typed. */

const field = findElement('#alert-form [name=body]', HTMLTextAreaElement)
const shown = findElement('#alert-body-shown', HTMLPreElement)
const before = String(shown.textContent)
const values = JSON.parse(String(shown.dataset.values))

field.addEventListener('input', showBody)
// A browser may have kept what was typed.
showBody()

function showBody () {
  const text = field.value.trim()
  const flaw = text === '' ? null : templateFlaw(text)
  const wrong = flaw ? `Expected ${flaw.expected}, received ${flaw.received}` : ''
  field.setCustomValidity(wrong)
  setText(shown, wrong || (text === '' ? before : JSON.stringify(fillTemplate(text, values), null, 2)))
}
