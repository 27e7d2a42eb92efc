import { HOME } from './base.ts'

/** The title and the icon of the tab: the number of problems, or that the connection is lost. */

const ownTitle = document.title

/** `isLost`: whether the master does not answer */
export function showTrouble (isLost: boolean) {
  const icon = document.getElementById('trouble')
  if (!icon) return
  const { count, shown, lost } = icon.dataset
  const href = HOME + (isLost ? lost : shown)
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href)
  const title = isLost ? `(no connection) ${ownTitle}` : Number(count) > 0 ? `(${count}) ${ownTitle}` : ownTitle
  if (document.title !== title) document.title = title
}
