import { createRequire } from 'node:module'

let state = 'over'
/** Whoever ends them finds this module by it, whichever file it has come in. */
const END = Symbol.for('clusterdeck.endPreloads')

/**
 * Code of the user's runs before the app, by `--require` or `--import`. A server that it opens, as for metrics, says
 * nothing of the app, which may take long until it listens. `options`: whether preload.ts will end it.
 */
export function beginPreloads ({ hasImports }: { hasImports: boolean }) {
  state = hasImports ? 'importing' : 'requiring'
  // All required modules and a CommonJS main module after them load in one turn.
  if (!hasImports) queueMicrotask(endPreloads)
  else Object.defineProperty(globalThis, END, { value: endPreloads, configurable: true })
}

function endPreloads () {
  state = 'over'
  Reflect.deleteProperty(globalThis, END)
}

/** Tells whether only preloads run yet, and nothing of the app */
export function arePreloading (): boolean {
  return state === 'importing' || (state === 'requiring' && createRequire(import.meta.url).main === undefined)
}
