import cluster from 'node:cluster'
import { BOOT_VARIABLE } from './protocol.js'
import { beginPreloads } from './preloads.js'
import { startWorker } from './worker.js'

const { [BOOT_VARIABLE]: settings } = process.env

if (settings && cluster.isWorker) {
  delete process.env[BOOT_VARIABLE]
  /** @type {import('./protocol.js').BootSettings} */
  const boot = JSON.parse(settings)
  // What the app sees of its own options, and hands on to its children, is what it would be without clusterdeck.
  if (boot.nodeOptions === null) delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = boot.nodeOptions
  beginPreloads(boot)
  startWorker(boot)
}
