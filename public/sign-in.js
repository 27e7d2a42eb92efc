import { HOME } from './base.js'
import { findElement } from './elements.js'
import { keepNotice, showToast } from './toasts.js'

/**
 * The form of the sign-in page, over the page on which a session has ended.
 * @typedef {{ name: string | null, role: string, apps: string[] | null }} Viewer
 */

const TITLE = 'Your session has ended'

/** @param {string | null} why @returns {Promise<void>} when the dialog is gone @throws {Error} the master does not answer */
export async function askToSignIn (why) {
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

/** @param {RequestInit} [request] @returns {Promise<{ viewer: Viewer | null, page: Document }>} `viewer`: who is signed in; null: `page` has the form */
async function ask (request) {
  const response = await fetch(`${HOME}/sign-in`, { ...request, headers: { accept: 'text/html', 'hx-request': 'true' } })
  const text = await response.text()
  const isIn = Boolean(response.headers.get('content-type')?.startsWith('application/json'))
  return { viewer: isIn ? JSON.parse(text) : null, page: new DOMParser().parseFromString(isIn ? '' : text, 'text/html') }
}

/** @param {Document} page @param {string | null} why */
function createDialog (page, why) {
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
  form.prepend(title, elementOf('p', `${reason === `${TITLE}.` ? '' : reason} Nothing was changed. Sign in again to go on here: what you have typed is kept.`.trim()))
  form.append(elementOf('p', 'If you get a sign-in link, open it in another tab, and come back to this one.', 'fine'))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    signIn(dialog, form)
  })
  dialog.append(form)
  return dialog
}

/** @param {HTMLDialogElement} dialog */
function closer (dialog) {
  const button = elementOf('button', 'Not now', 'button')
  button.setAttribute('type', 'button')
  button.addEventListener('click', () => dialog.close())
  return button
}

/** @param {HTMLDialogElement} dialog @param {HTMLFormElement} form */
async function signIn (dialog, form) {
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)))
  const answer = await ask({ method: 'POST', body }).catch(() => null)
  if (answer?.viewer) return leaveWith(dialog, answer.viewer)
  showToast(answer ? noticeOf(answer.page) ?? 'You could not be signed in.' : 'The master did not answer.')
}

/** @param {HTMLDialogElement} dialog */
async function lookAgain (dialog) {
  const { viewer } = await ask().catch(() => ({ viewer: null }))
  if (viewer && dialog.open) leaveWith(dialog, viewer)
}

/** @param {HTMLDialogElement} dialog @param {Viewer} viewer */
function leaveWith (dialog, viewer) {
  dialog.close()
  goOn(viewer)
}

/** What was typed is kept, unless it is somebody else now, whose page has other parts. @param {Viewer} viewer */
function goOn ({ name, role, apps }) {
  if (JSON.stringify([name, role, apps]) !== document.documentElement.dataset.viewer) {
    keepNotice(`You are signed in as ${name === null ? role : `${name}, ${role}`}.`)
    return location.reload()
  }
  document.dispatchEvent(new Event('clusterdeck:signed-in'))
  showToast('You are signed in again. Nothing of what you have typed was sent.', 'info')
}

/** @param {Document} page */
function noticeOf (page) {
  return page.querySelector('.notice')?.textContent?.trim() ?? null
}

/** @param {string} tag @param {string} text @param {string} [className] */
function elementOf (tag, text, className = '') {
  const element = document.createElement(tag)
  element.textContent = text
  element.className = className
  return element
}
