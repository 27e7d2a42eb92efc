const LOOK_AGAIN_MS = 20
const PATIENCE_MS = 40_000

/**
 * Looks until it is so: a process that is no child of ours tells nobody of its end.
 * @param {() => boolean | Promise<boolean>} isSo @param {string} what
 */
export async function until (isSo, what) {
  const deadline = performance.now() + PATIENCE_MS
  while (!await isSo()) {
    if (performance.now() > deadline) throw new Error(`waited ${PATIENCE_MS} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
  }
}
