import { readable } from './readable-text.ts'

const ENTITIES: Readonly<Record<string, string>> = Object.freeze({ '&': '&amp;', '<': '&lt;', '>': '&gt;',
  '"': '&quot;', '\'': '&#39;' })

/** @returns for the content of an element or an attribute in quotes */
export function escapeHtml (text: unknown): string {
  return String(text).replace(/[&<>"']/g, (character) => ENTITIES[character])
}

/** @returns the same for text that an app may have written */
export function escaped (text: unknown): string {
  return escapeHtml(readable(text))
}
