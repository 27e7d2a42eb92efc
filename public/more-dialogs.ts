import { BASE } from './base.ts'
import { findElement } from './elements.ts'

/** Dialogs that are not part of a page: all are loaded when the first of them is pointed at or opened. */

const { htmx } = window
let loading: Promise<void> | null = null

/** @throws {Refusal} the master does not answer, or the session has ended */
export async function dialogOf (id: string): Promise<HTMLDialogElement> {
  if (!document.getElementById(id)) await (loading ??= loadDialogs())
  return findElement(`#${id}`, HTMLDialogElement)
}

async function loadDialogs () {
  try {
    const template = document.createElement('template')
    template.innerHTML = await fetchHtml('/dialogs')
    if (/^(Mac|iP)/.test(navigator.platform)) {
      for (const key of template.content.querySelectorAll('[data-control]')) key.textContent = '⌘'
    }
    for (const dialog of template.content.querySelectorAll('dialog')) {
      if (document.getElementById(dialog.id)) continue
      document.body.append(dialog)
      htmx.process(dialog)
    }
  } catch (error) {
    loading = null
    throw error
  }
}

export type Refusal =
  & Error
  & { cause?: { status?: number } }

/** @throws {Refusal} */
export async function fetchHtml (path: string): Promise<string> {
  // It asks as htmx does, so that an ended session gets an error and not the sign-in page.
  const response = await fetch(BASE + path, { headers: { 'hx-request': 'true', accept: 'text/html' } })
  if (!response.ok) throw new Error(`status ${response.status}`, { cause: { status: response.status } })
  return response.text()
}
