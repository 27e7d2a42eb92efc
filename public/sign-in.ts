import { HOME } from './base.ts'
import { findElement } from './elements.ts'
import { keepNotice, showToast } from './toasts.ts'

/** The form of the sign-in page, over the page on which a session has ended. */
type Viewer = { name: string | null, role: string, apps: string[] | null }

const TITLE = 'Your session has ended'

/** Returns when the dialog is gone @throws {Error} the master does not answer */
export async function askToSignIn (why: string | null): Promise<void> {
  const { viewer, page } = await ask()
  if (viewer) return goOn(viewer)
  const dialog = createDialog(page, why)
  document.body.append(dialog)
  dialog.showModal()
  const leave = new AbortController()
  // Whoever comes back may have opened a sign-in link in another tab.
  addEventListener('focus', () => lookAgain(dialog), { signal: leave.signal })
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  leave.abort()
  dialog.remove()
}

/** @returns `viewer`: who is signed in; null: `page` has the form */
async function ask (request?: RequestInit): Promise<{ viewer: Viewer | null, page: Document }> {
  const response = await fetch(`${HOME}/sign-in`, { ...request,
    headers: { accept: 'text/html', 'hx-request': 'true' } })
  const text = await response.text()
  const isIn = Boolean(response.headers.get('content-type')?.startsWith('application/json'))
  return { viewer: isIn ? JSON.parse(text) : null,
    page: new DOMParser().parseFromString(isIn ? '' : text, 'text/html') }
}

function createDialog (page: Document, why: string | null) {
  const dialog = document.createElement('dialog')
  dialog.className = 'dialog'
  dialog.setAttribute('aria-labelledby', 'sign-in-title')
  const form = document.importNode(findElement('form', HTMLFormElement, page), true)
  const submit = findElement('[type=submit]', HTMLButtonElement, form)
  const title = elementOf('h2', TITLE)
  title.id = 'sign-in-title'
  const row = elementOf('div', '', 'button-row end')
  submit.classList.remove('wide')
  submit.replaceWith(row)
  row.append(closer(dialog), submit)
  const reason = why ?? noticeOf(page) ?? ''
  form.prepend(title,
    elementOf('p',
      `${
        reason === `${TITLE}.` ? '' : reason
      } Nothing was changed. Sign in again to go on here: what you have typed is kept.`.trim()))
  form.append(elementOf('p', 'If you get a sign-in link, open it in another tab, and come back to this one.', 'fine'))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    signIn(dialog, form)
  })
  dialog.append(form)
  return dialog
}

function closer (dialog: HTMLDialogElement) {
  const button = elementOf('button', 'Not now', 'button')
  button.setAttribute('type', 'button')
  button.addEventListener('click', () => dialog.close())
  return button
}

async function signIn (dialog: HTMLDialogElement, form: HTMLFormElement) {
  const body = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]))
  const answer = await ask({ method: 'POST', body }).catch(() => null)
  if (answer?.viewer) return leaveWith(dialog, answer.viewer)
  showToast(answer ? noticeOf(answer.page) ?? 'You could not be signed in.' : 'The master did not answer.')
}

async function lookAgain (dialog: HTMLDialogElement) {
  const { viewer } = await ask().catch(() => ({ viewer: null }))
  if (viewer && dialog.open) leaveWith(dialog, viewer)
}

function leaveWith (dialog: HTMLDialogElement, viewer: Viewer) {
  dialog.close()
  goOn(viewer)
}

/** What was typed is kept, unless it is somebody else now, whose page has other parts. */
function goOn ({ name, role, apps }: Viewer) {
  if (JSON.stringify([name, role, apps]) !== document.documentElement.dataset.viewer) {
    keepNotice(`You are signed in as ${name === null ? role : `${name}, ${role}`}.`)
    return location.reload()
  }
  document.dispatchEvent(new Event('clusterdeck:signed-in'))
  showToast('You are signed in again. Nothing of what you have typed was sent.', 'info')
}

function noticeOf (page: Document) {
  return page.querySelector('.notice')?.textContent?.trim() ?? null
}

function elementOf (tag: string, text: string, className: string = '') {
  const element = document.createElement(tag)
  element.textContent = text
  element.className = className
  return element
}
