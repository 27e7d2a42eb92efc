/**
 * Something that happens once; who waits for it waits for `reached`.
 * @template [T=void]
 * @returns {{ reached: Promise<T>, reach: (value: T) => void }}
 */
export function createDeferred () {
  /** @type {(value: T) => void} */
  let reach = () => {}
  const reached = new Promise((/** @type {(value: T) => void} */ resolve) => { reach = resolve })
  return { reached, reach }
}
