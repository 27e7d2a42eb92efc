import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { attempt } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'

/**
 * A thread that ends its process if a config file keeps the main thread busy for ever. That one then hears no signal
 * and no timer, and does not see that the keeper is gone; see file.ts.
 */

const { file, patienceMs, keeper }: { file: string, patienceMs: number, keeper: { pid: number, fd: number } | null } =
  workerData
const LOOK_EVERY_MS = 500
/** The main thread has this long to answer; it can if it only waits for the file. */
const ANSWER_WITHIN_MS = 500
const DELIVERY_MS = 200
const USAGE_EXIT_CODE = 2

if (keeper)
  setInterval(() => {
    if (process.ppid !== keeper.pid) killProcess()
  }, LOOK_EVERY_MS)
await wait(patienceMs)
parentPort?.postMessage('late')
await wait(ANSWER_WITHIN_MS)
// EPIPE, EBADF: whoever reads may be gone.
attempt(() =>
  writeSync(2,
    `clusterdeck: ${file}: expected a config file that loads, received: nothing within ${durationText(patienceMs)}\n`)
)
// The keeper then gives up instead of trying again; see keeper/link.js.
if (keeper)
  // EPIPE, EBADF: whoever reads may be gone.
  attempt(() => writeSync(keeper.fd, `${JSON.stringify({ type: 'start-failed', code: USAGE_EXIT_CODE })}\n`))
await wait(DELIVERY_MS)
killProcess()

function killProcess () {
  process.kill(process.pid, 'SIGKILL')
}
