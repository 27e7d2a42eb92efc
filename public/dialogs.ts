import { forgetChange, warnOfChange } from './changed.ts'
import { dialogOf, type Refusal } from './more-dialogs.ts'
import { showPreferences } from './preferences.ts'
import { signInAgain } from './session.ts'
import { showToast } from './toasts.ts'

/** By element, its last request since something was typed. */
const asked: WeakMap<Element, object> = new WeakMap()

/**
 * Confirmations. Forms live in native dialogs, so focus, Escape and the return of focus are the browser's business.
 *
 * <button data-dialog="dialog-scale" data-fill-workers="4" data-subject="…"> opens, fills the field `workers`
 * <div data-load-here></div><template>…</template>                           shows that until what the opener asks for
 * by htmx has come, or what it asks for itself on `clusterdeck:open`
 * <button data-close>                                                        closes the dialog around it
 */
export function startDialogs () {
  // A dialog that has to be loaded is there by the click.
  document.addEventListener('pointerover', ({ target }) => {
    const id = target instanceof Element && target.closest('[data-dialog]')?.getAttribute('data-dialog')
    if (id) dialogOf(id).catch(() => {})
  })
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element)) return
    const opener: HTMLElement | null = target.closest('[data-dialog]')
    if (opener) openFor(opener)
    if (target.closest('[data-close]')) target.closest('dialog')?.close()
  })
  document.addEventListener('input', ({ target }) => {
    const place = target instanceof Element && target.closest('dialog')?.querySelector('[data-load-here][hx-include]')
    if (place && !place.contains(target) && target.closest(String(place.getAttribute('hx-include')))) outdate(place)
  })
  document.addEventListener('htmx:config:request', ({ detail: { ctx } }) => {
    asked.set(ctx.sourceElement, ctx)
  })
  document.addEventListener('htmx:after:request', ({ detail: { ctx: { sourceElement, response } } }) => {
    // What a dialog loads for itself is no answer to it.
    if (!response || response.status >= 400 || sourceElement.hasAttribute('data-load-here')) return
    sourceElement.closest('dialog')?.close()
  })
  document.addEventListener('htmx:after:swap', ({ detail: { ctx: { sourceElement }, ctx } }) => {
    if (asked.get(sourceElement) === ctx) sourceElement.removeAttribute('aria-busy')
    const dialog = document.querySelector('dialog[open]')
    if (dialog) showCommands(dialog)
  })
  document.addEventListener('htmx:response:error', ({ detail }) => showRefusal(detail.ctx))
  document.addEventListener('htmx:error', ({ detail }) => {
    if (!detail.ctx?.response) showToast('The master did not answer. Nothing was changed.')
  })
}

/** What is shown is not of what is typed now: it is pale, and its commit is not what one confirms. */
function outdate (place: Element) {
  asked.delete(place)
  place.setAttribute('aria-busy', 'true')
  place.querySelector('[name=commit]')?.remove()
}

function showRefusal (refused: { text?: string, response?: { status: number }, sourceElement: Element }) {
  const { sourceElement: form, response } = refused
  if (response?.status === 401) return signInAgain()
  if (response?.status === 412 && form instanceof HTMLFormElement && form.elements.namedItem('seen'))
    return warnOfChange(form, JSON.parse(refused.text ?? '{}'))
  showToast(problemOf(refused))
}

/** Shows the reason of a disabled button, which stays focusable for that. */
function openFor (opener: HTMLElement) {
  if (opener.getAttribute('aria-disabled') !== 'true') return openDialog(opener.dataset.dialog ?? '', opener)
  const reason = document.getElementById(opener.getAttribute('aria-describedby') ?? '')
  showToast(reason?.textContent ?? 'This is not possible now.')
}

/** `opener`: its data attributes fill the dialog */
export async function openDialog (id: string, opener?: HTMLElement) {
  const dialog = await dialogOf(id).catch(sayUnavailable)
  if (!dialog || dialog.open) return
  dialog.querySelector('form')?.reset()
  forgetChange(dialog)
  if (opener) fillDialog(dialog, opener)
  showPreferences(dialog)
  const template = dialog.querySelector('template')
  // The content of the last time may be about something else.
  const place = dialog.querySelector('[data-load-here]')
  if (template) place?.replaceChildren(template.content.cloneNode(true))
  showCommands(dialog)
  dialog.showModal()
  place?.dispatchEvent(new Event('clusterdeck:open'))
}

function sayUnavailable ({ cause }: Refusal) {
  if (cause?.status === 401) signInAgain()
  else showToast('The master did not answer. Nothing was changed.')
}

function fillDialog (dialog: HTMLDialogElement, opener: HTMLElement) {
  const fields: NodeListOf<HTMLInputElement | HTMLOutputElement> = dialog.querySelectorAll('input, output')
  for (const field of fields) {
    const value = opener.getAttribute(`data-fill-${field.name}`)
    if (value !== null) field.value = value
  }
  for (const place of dialog.querySelectorAll('[data-subject-here]')) place.textContent = opener.dataset.subject ?? ''
}

/** Loads the scripts of a dialog when the first dialog needs them. */
async function showCommands (dialog: Element) {
  if (dialog.querySelector('[data-calls]')) (await import('./commands.ts')).showCommands(dialog)
  if (dialog.matches('[data-notifications]')) document.dispatchEvent(new Event('clusterdeck:notifications'))
}

/** @returns the sentence of an RFC 9457 problem */
function problemOf ({ text, response }: { text?: string, response?: { status: number } }): string {
  try {
    const { title, detail } = JSON.parse(text ?? '')
    return [title, detail].filter(Boolean).join(': ')
  } catch {
    return `The request failed (${response?.status}).`
  }
}
