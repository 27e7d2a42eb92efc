import { showToast } from './toasts.ts'

export function startCopying () {
  document.addEventListener('click', ({ target }) => {
    const button = target instanceof Element && target.closest('[data-copy]')
    if (button) copyBeside(button)
  })
}

async function copyBeside (button: Element) {
  if (await copyText(button.parentElement?.querySelector('code')?.textContent ?? ''))
    return showToast('Copied.', 'info')
  selectText(button.parentElement?.querySelector('code'))
  showToast('The browser does not let this page copy. The text is selected instead.', 'info')
}

export async function copyText (text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // A page that did not come by https, or from another machine, may only do as if somebody had chosen Copy in a menu.
    return copyByCommand(text)
  }
}

function copyByCommand (text: string) {
  const fill = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text)
    event.preventDefault()
  }
  document.addEventListener('copy', fill, { once: true })
  const isCopied = document.execCommand('copy')
  document.removeEventListener('copy', fill)
  return isCopied
}

function selectText (element: Element | null | undefined) {
  if (element) document.getSelection()?.selectAllChildren(element)
}
