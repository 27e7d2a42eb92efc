// Loaded by `--import` before the app. In anything that is not a worker of this cluster (a child of the app, a worker
// thread, the app's own cluster) the variable is absent, and nothing happens.
import cluster from 'node:cluster'
import { isMainThread } from 'node:worker_threads'
import { BOOT_VARIABLE } from './protocol.js'

const settings = process.env[BOOT_VARIABLE]
if (settings && cluster.isWorker && isMainThread) {
  delete process.env[BOOT_VARIABLE]
  forgetPreload()
  if (/\.c?tsx?$/.test(process.argv[1])) {
    const { requireEntry } = await import('./required-entry.js')
    requireEntry(process.argv[1], [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' '))
  }
  const { startWorker } = await import('./worker.js')
  startWorker(JSON.parse(settings))
}

// What the app sees of its own options, and hands on to its children, is what it would be without clusterdeck.
function forgetPreload () {
  const at = process.execArgv.findIndex((word, index) => word === '--import' && process.execArgv[index + 1] === import.meta.url)
  if (at >= 0) process.execArgv.splice(at, 2)
}
