import os from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { unpackArchive } from './unpack.js'

/** Unpacks in a thread of its own; see packages.js. */

// On Linux that is this thread's alone: whoever unpacks is not to slow the app down.
if (process.platform === 'linux') os.setPriority(os.constants.priority.PRIORITY_LOW)

const { file, folder } = workerData
try {
  await unpackArchive(file, folder)
  parentPort?.postMessage({ problem: null })
} catch (/** @type {any} */ error) {
  parentPort?.postMessage({ problem: String(error?.message ?? error) })
}
