/** Elements that the page has to have, by kind. */

/**
 * @template {Element} E
 * @param {string} selector
 * @param {new () => E} type  such as `HTMLInputElement`
 * @param {ParentNode} [root]
 * @returns {E} the first
 * @throws {TypeError} there is none, or one of another kind
 */
export function findElement (selector, type, root = document) {
  const found = root.querySelector(selector)
  if (found instanceof type) return found
  throw new TypeError(`expected an ${type.name} at ${selector}, received ${found}`)
}

/** @param {string} id */
export function byId (id) {
  return findElement(`#${id}`, HTMLElement)
}

/**
 * An equal text is not set again, so that a selection in it survives and a screen reader does not repeat it.
 * @param {Element | null} element @param {string} text
 */
export function setText (element, text) {
  if (element && element.textContent !== text) element.textContent = text
}
