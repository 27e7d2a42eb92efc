// Loaded by `--import` before the app: the last of all preloads. It tells that these are over; and where Node cannot load
// an ES module by require(), so that preload.cjs is not used, it starts the worker's side.
import module from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { BOOT_VARIABLE } from './protocol.js'

const at = process.execArgv.findIndex((word, index) => word === '--import' && process.execArgv[index + 1] === import.meta.url)
if (at >= 0) process.execArgv.splice(at, 2)
if (isMainThread) {
  const { [BOOT_VARIABLE]: settings } = process.env
  if (settings) await startHere(JSON.parse(settings))
  const { [Symbol.for('clusterdeck.endPreloads')]: endPreloads } = /** @type {any} */ (globalThis)
  endPreloads?.()
}

/** @param {import('./protocol.js').BootSettings} settings */
async function startHere ({ compileCache }) {
  const { enableCompileCache } = /** @type {{ enableCompileCache?: (folder: string) => unknown }} */ (module)
  if (compileCache !== null) enableCompileCache?.(compileCache)
  await import('./boot.js')
}
