/** Elements that the page has to have, by kind. */

/** `type`: such as `HTMLInputElement`. Returns the first. @throws {TypeError} there is none, or one of another kind */
export function findElement<E extends Element> (selector: string, type: new() => E, root: ParentNode = document): E {
  const found = root.querySelector(selector)
  if (found instanceof type) return found
  throw new TypeError(`expected an ${type.name} at ${selector}, received ${found}`)
}

export function byId (id: string) {
  return findElement(`#${id}`, HTMLElement)
}

/** An equal text is not set again, so that a selection in it survives and a screen reader does not repeat it. */
export function setText (element: Element | null, text: string) {
  if (element && element.textContent !== text) element.textContent = text
}
