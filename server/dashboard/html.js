/** @type {Readonly<Record<string, string>>} */
const ENTITIES = Object.freeze({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })

/** @param {unknown} text @returns {string} for the content of an element or an attribute in quotes */
export function escapeHtml (text) {
  return String(text).replace(/[&<>"']/g, (character) => ENTITIES[character])
}
