/**
 * A form that was opened before somebody else changed the thing: it says so, and sends only if its reader confirms.
 * `change`: who has changed it; `now`: the state that there is; `field`: which holds the state that the form has shown.
 */
export function warnOfChange (form: HTMLFormElement,
  { detail, change = detail, now }: { detail: string, change?: string, now?: string }, field: string = 'seen')
{
  const seen = form.elements.namedItem(field)
  if (seen instanceof HTMLInputElement && now !== undefined) seen.value = now
  const submit = form.querySelector('[type=submit]') as HTMLButtonElement | null
  const notice = form.querySelector('[data-changed]') ??
    form.insertBefore(createNotice(), submit?.closest('.button-row') ?? null)
  notice.textContent = `${change}. Nothing was changed.`
  if (submit) holdBack(submit)
  // The preview in the dialog is from before the change, too.
  form.querySelector('[data-load-here]')?.dispatchEvent(new Event('clusterdeck:open'))
}

/** A second click of a double-click confirms nothing. */
const HELD_MS = 800

function holdBack (submit: HTMLButtonElement) {
  submit.dataset.label ??= submit.textContent ?? ''
  submit.textContent = `${submit.dataset.label} anyway`
  submit.disabled = true
  setTimeout(() => {
    submit.disabled = false
  }, HELD_MS)
}

function createNotice () {
  const notice = document.createElement('p')
  notice.className = 'notice tone-warn'
  notice.dataset.changed = ''
  notice.setAttribute('role', 'alert')
  return notice
}

export function forgetChange (dialog: HTMLElement) {
  dialog.querySelector('[data-changed]')?.remove()
  for (const submit of dialog.querySelectorAll('[data-label]')) {
    if (submit instanceof HTMLButtonElement && submit.dataset.label !== undefined)
      submit.textContent = submit.dataset.label
  }
}
