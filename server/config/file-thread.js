import { parentPort, workerData } from 'node:worker_threads'

/** Loads one config file and sends what it exports; see file.js. */

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)

try {
  port.postMessage({ values: (await import(workerData)).default })
} catch (/** @type {any} */ error) {
  // Also where a function was exported, which cannot be sent.
  port.postMessage({ reason: String(error?.message ?? error) })
}
