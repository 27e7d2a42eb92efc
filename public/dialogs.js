import { showToast } from './toasts.js'

/**
 * Confirmations. Forms live in native dialogs, so focus, Escape and the return of focus are the browser's business.
 *
 *     <button data-dialog="dialog-scale" data-fill-workers="4" data-subject="…"> opens, fills the field `workers`
 *     <button data-close>                                                        closes the dialog around it
 */
export function startDialogs () {
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element)) return
    const opener = /** @type {HTMLElement | null} */ (target.closest('[data-dialog]'))
    if (opener) open(opener)
    if (target.closest('[data-close]')) target.closest('dialog')?.close()
  })
  document.addEventListener('htmx:after:request', (event) => {
    const { sourceElement, response } = contextOf(event)
    if (response && response.status < 400) closeAround(sourceElement)
  })
  document.addEventListener('htmx:response:error', (event) => showToast(problemOf(contextOf(event))))
  document.addEventListener('htmx:error', (event) => {
    if (!contextOf(event).response) showToast('The master did not answer. Nothing was changed.')
  })
}

/** Refused buttons stay focusable, so that the reason can be read; here it is said. */
function open (/** @type {HTMLElement} */ opener) {
  if (opener.getAttribute('aria-disabled') === 'true') {
    const reason = document.getElementById(opener.getAttribute('aria-describedby') ?? '')
    return showToast(reason?.textContent ?? 'This is not possible now.')
  }
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById(opener.dataset.dialog ?? ''))
  dialog.querySelector('form')?.reset()
  for (const input of dialog.querySelectorAll('input')) {
    const value = opener.getAttribute(`data-fill-${input.name}`)
    if (value !== null) input.value = value
  }
  for (const place of dialog.querySelectorAll('[data-subject-here]')) place.textContent = opener.dataset.subject ?? ''
  dialog.showModal()
}

function closeAround (/** @type {Element} */ element) {
  element.closest('dialog')?.close()
}

/** @returns {{ sourceElement: Element, response?: { status: number }, text?: string }} what htmx tells about a request */
function contextOf (/** @type {Event} */ event) {
  return /** @type {CustomEvent} */ (event).detail.ctx ?? {}
}

/** @returns {string} the sentence of an RFC 9457 problem */
function problemOf (/** @type {{ text?: string, response?: { status: number } }} */ { text, response }) {
  try {
    const { title, detail } = JSON.parse(text ?? '')
    return [title, detail].filter(Boolean).join(': ')
  } catch {
    return `The request failed (${response?.status}).`
  }
}
