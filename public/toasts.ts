import { byId } from './elements.ts'

const LIFETIME_MS = 8000

/** `text`: what went wrong, or what else has to be said, as text: it may quote anything */
export function showToast (text: string, tone: 'bad' | 'info' = 'bad') {
  const toast = document.createElement('div')
  toast.className = `toast tone-${tone}`
  toast.setAttribute('role', tone === 'bad' ? 'alert' : 'status')
  const message = document.createElement('p')
  message.textContent = text
  const close = document.createElement('button')
  close.type = 'button'
  close.className = 'toast-close'
  close.textContent = 'Dismiss'
  close.addEventListener('click', () => toast.remove())
  toast.append(message, close)
  toastRegion().append(toast)
  setTimeout(() => toast.remove(), LIFETIME_MS)
}

const KEPT = 'clusterdeck-notice'

/** `text`: to be said once the page has been loaded anew */
export function keepNotice (text: string) {
  sessionStorage.setItem(KEPT, text)
}

export function showKeptNotice () {
  const text = sessionStorage.getItem(KEPT)
  sessionStorage.removeItem(KEPT)
  if (text) showToast(text, 'info')
}

/** A modal dialog makes everything outside of it inert, so that is where it must be said. */
function toastRegion () {
  return Array.from(document.querySelectorAll('dialog[open]')).at(-1) ?? byId('toasts')
}
