// Loaded by `--require` before everything else, what the user preloads included: a server that such a preload opens is to
// take its socket from the master too. In anything that is not a worker of this cluster (a child of the app, a worker
// thread, the app's own cluster) the variable is absent, and nothing happens.
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { enableCompileCache } =
  /** @type {{ enableCompileCache?: (folder: string) => unknown }} */ (require('node:module'))
const { isMainThread } = require('node:worker_threads')

const at = process.execArgv.findIndex((word, index) =>
  word === '--require' && process.execArgv[index + 1] === __filename
)
if (at >= 0) process.execArgv.splice(at, 2)
if (process.env.CLUSTERDECK_BOOT && isMainThread) beginPreload(JSON.parse(process.env.CLUSTERDECK_BOOT))
delete require.cache[__filename]

/** @param {import('./protocol.ts').BootSettings} settings */
function beginPreload ({ code, compileCache }) {
  if (compileCache !== null) enableCompileCache?.(compileCache)
  // The bundle of a master that has run for long may have been replaced by those of later installations.
  const file = existsSync(code) ? code : join(__dirname, 'worker.cjs')
  require(file)
  delete require.cache[file]
}
