import { showToast } from './toasts.js'

/** Buttons copy the text beside them. */
export function startCopying () {
  document.addEventListener('click', ({ target }) => {
    const button = target instanceof Element && target.closest('[data-copy]')
    if (button) copyBeside(button)
  })
}

/** @param {Element} button */
async function copyBeside (button) {
  if (await copyText(button.parentElement?.querySelector('code')?.textContent ?? '')) return showToast('Copied.', 'info')
  selectText(button.parentElement?.querySelector('code'))
  showToast('The browser does not let this page copy. The text is selected instead.', 'info')
}

/** @param {string} text @returns {Promise<boolean>} whether the browser allows it */
export async function copyText (text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // A page that did not come by https, or from another machine, may only do as if somebody had chosen Copy in a menu.
    return copyByCommand(text)
  }
}

/** @param {string} text */
function copyByCommand (text) {
  const fill = (/** @type {ClipboardEvent} */ event) => {
    event.clipboardData?.setData('text/plain', text)
    event.preventDefault()
  }
  document.addEventListener('copy', fill, { once: true })
  const isCopied = document.execCommand('copy')
  document.removeEventListener('copy', fill)
  return isCopied
}

/** @param {Element | null | undefined} element */
function selectText (element) {
  if (element) document.getSelection()?.selectAllChildren(element)
}
