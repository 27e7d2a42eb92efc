import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * A thread that ends its process where a config file keeps the main one busy for ever, and no signal is heard, no time is
 * up and nobody sees that the keeper is gone; see file.js.
 */

/** @type {{ file: string, patienceMs: number, keeper: { pid: number, fd: number } | null }} */
const { file, patienceMs, keeper } = workerData
const LOOK_EVERY_MS = 500
/** How long the main thread has to show that it is only waiting itself. */
const ANSWER_WITHIN_MS = 500
const DELIVERY_MS = 200
const USAGE_EXIT_CODE = 2

if (keeper) setInterval(() => { if (process.ppid !== keeper.pid) killProcess() }, LOOK_EVERY_MS)
await wait(patienceMs)
parentPort?.postMessage('late')
await wait(ANSWER_WITHIN_MS)
attemptWork(() => writeSync(2, `clusterdeck: ${file}: expected a config file that loads, received: nothing within ${patienceMs} ms\n`))
// The first start of all comes to nothing, and nobody tries again. See keeper/link.js.
if (keeper) attemptWork(() => writeSync(keeper.fd, `${JSON.stringify({ type: 'start-failed', code: USAGE_EXIT_CODE })}\n`))
await wait(DELIVERY_MS)
killProcess()

function killProcess () {
  process.kill(process.pid, 'SIGKILL')
}

/** @param {() => void} work */
function attemptWork (work) {
  try {
    work()
  } catch {
    // EPIPE, EBADF: nobody is there any more.
  }
}
