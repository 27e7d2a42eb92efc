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
  const text = button.parentElement?.querySelector('code')?.textContent ?? ''
  try {
    await navigator.clipboard.writeText(text)
    showToast('Copied.', 'info')
  } catch {
    // A page that did not come by https, or from another machine, may not write there.
    selectText(button.parentElement?.querySelector('code'))
    showToast('The browser does not let this page copy. The text is selected instead.', 'info')
  }
}

/** @param {Element | null | undefined} element */
function selectText (element) {
  if (element) document.getSelection()?.selectAllChildren(element)
}
