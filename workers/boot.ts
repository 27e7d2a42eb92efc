import cluster from 'node:cluster'
import { closeSync, readSync } from 'node:fs'
import { BOOT_VARIABLE, START_DESCRIPTOR, type BootSettings } from './protocol.ts'
import { beginPreloads } from './preloads.ts'
import { startWorker } from './worker.ts'

const { [BOOT_VARIABLE]: settings } = process.env

if (settings && cluster.isWorker) {
  delete process.env[BOOT_VARIABLE]
  readSync(START_DESCRIPTOR, new Uint8Array(1))
  closeSync(START_DESCRIPTOR)
  const boot: BootSettings = JSON.parse(settings)
  // The app sees its options, and hands them on to its children, as it would without clusterdeck.
  if (boot.nodeOptions === null) delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = boot.nodeOptions
  // A report that Node writes at a fatal error has the whole environment otherwise. Node 20 cannot leave it out.
  if (boot.hasSecrets && 'excludeEnv' in process.report) process.report.excludeEnv = true
  beginPreloads(boot)
  startWorker(boot)
}
