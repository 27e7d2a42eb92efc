const LIFETIME_MS = 8000

/** @param {string} text what went wrong, as text: it may quote anything */
export function showToast (text) {
  const toast = document.createElement('div')
  toast.className = 'toast'
  toast.setAttribute('role', 'alert')
  const message = document.createElement('p')
  message.textContent = text
  const close = document.createElement('button')
  close.type = 'button'
  close.className = 'toast-close'
  close.textContent = 'Dismiss'
  close.addEventListener('click', () => toast.remove())
  toast.append(message, close)
  region().append(toast)
  setTimeout(() => toast.remove(), LIFETIME_MS)
}

/** A modal dialog makes everything outside of it inert, so that is where it must be said. */
function region () {
  return document.querySelector('dialog[open]') ?? /** @type {HTMLElement} */ (document.getElementById('toasts'))
}
