import { parentPort, workerData } from 'node:worker_threads'
import { errorText } from '../errors.js'

/** Loads one config file and sends what it exports; see file.js. */

try {
  parentPort?.postMessage({ values: (await import(workerData)).default })
} catch (error) {
  // DataCloneError: it exports a function, which cannot be sent.
  parentPort?.postMessage({ reason: errorText(error) })
}
