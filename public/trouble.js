import { BASE } from './base.js'

/** What the tab says while nobody looks at the page: how much is wrong, or that nobody can tell. */

const ownTitle = document.title

/** @param {boolean} isLost whether the master does not answer */
export function showTrouble (isLost) {
  const icon = /** @type {HTMLLinkElement | null} */ (document.getElementById('trouble'))
  if (!icon) return
  const { count, shown, lost } = icon.dataset
  const href = BASE + (isLost ? lost : shown)
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href)
  const title = isLost ? `(no connection) ${ownTitle}` : Number(count) > 0 ? `(${count}) ${ownTitle}` : ownTitle
  if (document.title !== title) document.title = title
}
