// Loaded by `--import` before the app, where it has such preloads itself: the last of all. It tells that these are
// over.
import { isMainThread } from 'node:worker_threads'

const at = process.execArgv.findIndex((word, index) =>
  word === '--import' && process.execArgv[index + 1] === import.meta.url
)
if (at >= 0) process.execArgv.splice(at, 2)
if (isMainThread) {
  const endPreloads: unknown = Reflect.get(globalThis, Symbol.for('clusterdeck.endPreloads'))
  if (typeof endPreloads === 'function') endPreloads()
}
