import os from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { errorText } from '../errors.ts'
import { unpackArchive } from '../system/unpack.ts'

/** Unpacks in a thread of its own; see packages.ts. */

// On Linux a priority is that of one thread: unpacking must not slow the app down.
if (process.platform === 'linux') os.setPriority(os.constants.priority.PRIORITY_LOW)

const { file, folder } = workerData
try {
  await unpackArchive(file, folder)
  parentPort?.postMessage({ problem: null })
} catch (error) {
  parentPort?.postMessage({ problem: errorText(error) })
}
