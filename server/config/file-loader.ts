import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { errorText } from '../errors.ts'

/** Loads one config file, in a thread or in a process of its own, and sends what it exports; see file.ts. */

const file = isMainThread ? process.argv[2] : workerData
// Whoever waits for the answer ends this process: an exit of its own might be seen before that.
if (isMainThread) process.channel?.ref()

try {
  sendAnswer({ values: (await import(file)).default })
} catch (error) {
  // DataCloneError: it exports a function, which cannot be sent.
  sendAnswer({ reason: errorText(error) })
}

function sendAnswer (answer: { values: unknown } | { reason: string }) {
  if (isMainThread) process.send?.(answer)
  else parentPort?.postMessage(answer)
}
