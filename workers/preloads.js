import { createRequire } from 'node:module'

let state = 'over'

/**
 * Code of the user's runs before the app, by `--require` or `--import`. A server that it opens, as for metrics, says
 * nothing of the app, which may take long until it listens.
 * @param {{ hasImports: boolean }} options  whether `endPreloads` will be called
 */
export function beginPreloads ({ hasImports }) {
  state = hasImports ? 'importing' : 'requiring'
  // All that is required is loaded in one turn, and so is the main module of CommonJS behind it.
  if (!hasImports) queueMicrotask(endPreloads)
}

export function endPreloads () { state = 'over' }

/** @returns {boolean} whether what runs now is none of the app yet */
export function arePreloading () {
  return state === 'importing' || (state === 'requiring' && createRequire(import.meta.url).main === undefined)
}
