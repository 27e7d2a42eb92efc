// From the SIGKILL of the only worker to full strength, and to the first answer over a new connection: with a standby
// worker, and with a fork.
import http from 'node:http'
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { present } from '../support/present.ts'
import { printTable, spreadOf } from './figures.ts'

const KILLS = 15
const WAYS = Object.freeze({ 'a fork': [], 'a standby': ['--standby', '1'],
  'a standby, with a probe': ['--standby', '1', '--ready-path', '/'] })
/** A standby that has just loaded still looks at what it has loaded. */
const REST_MS = 500
/** Asked for too often it would be the bench that is measured. */
const ASK_EVERY_MS = 1

console.log(`ms after the SIGKILL of the only worker, of ${KILLS}\n`)
const rows = [['', 'until worker.ready', 'until the first answer']]
for (const [way, flags] of Object.entries(WAYS)) {
  const runs = await measure(flags)
  rows.push([way, ...(['readyMs', 'answerMs'] as const).map((key) => spreadOf(runs.map((run) => run[key]), 0))])
}
printTable(rows)

async function measure (flags: string[]) {
  const owner = createOwner()
  const deck = await startDeck(owner, 'hello.js', { workers: 1,
    flags: [...flags, '--restart-min-delay-ms', '0', '--rollout-guard-ms', '0'] })
  const url = await deck.until({ ready: 1 }).then(deck.appUrl)
  const runs = []
  for (let kill = 1; kill <= KILLS; kill++) {
    const { workers: [worker] } = await deck.untilStatus(
      ({ readyWorkers, standby }) => readyWorkers === 1 && standby.ready === standby.wanted,
      'a worker, and its standby'
    )
    await new Promise((resolve) => setTimeout(resolve, REST_MS))
    const killedAt = Date.now()
    process.kill(present(worker.pid), 'SIGKILL')
    const answered = untilAnswer(url)
    const ready = await deck.untilEvent(
      ({ type, worker: id }) => type === 'worker.ready' && Number(id) > Number(worker.id),
      'the next worker'
    )
    runs.push({ readyMs: Date.parse(ready.at) - killedAt, answerMs: await answered })
  }
  await owner.end()
  return runs
}

/** A connection that the dying worker has taken is lost with it: a new one is made, as a client would. @returns ms */
async function untilAnswer (url: string): Promise<number> {
  const from = performance.now()
  for (;;) {
    const isAnswered = await new Promise((resolve) => {
      http.get(url, { agent: false }, (response) => response.resume().on('end', () => resolve(true))).on('error', () =>
        resolve(false))
    })
    if (isAnswered) return performance.now() - from
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
  }
}
