// Uploads, downloads and event streams that are longer than any deadline, over three deploys; beside them uploads that
// stand still.
//   node test/long-lived/transfers.ts [--seconds 120] [--each 12] [--flag=--drain-deadline-ms=10000 …]
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { toTable } from '../apps/report.ts'
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { freePort } from '../support/ports.ts'
import { download, eventStream, stalledUpload, upload, type Outcome } from './clients/transfers.ts'
import { countBy } from './count-by.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '120' }, each: { type: 'string', default: '12' },
    flag: { type: 'string', multiple: true, default: [] } }
})
const DEPLOYS = 3
const ms = Number(values.seconds) * 1000
const EACH = Number(values.each)

const port = await freePort()
const owner = createOwner()
const deck = await startDeck(owner, new URL('programs/transfers.ts', import.meta.url).pathname, { workers: 2,
  env: { PORT: String(port) }, flags: values.flag })
await deck.until({ ready: 2 })
const outcomes: Outcome[] = []
const running: Promise<void>[] = []
for (let n = 0; n < DEPLOYS; n++) {
  for (let each = n; each < EACH; each += DEPLOYS)
    running.push(...[upload, download, eventStream, stalledUpload].map(watchOne))
  await wait(ms / DEPLOYS / 4)
  const begunAt = performance.now()
  const { state } = await deck.rollout('deploy')
  const { workers } = await deck.status()
  process.stderr.write(
    `deploy ${n + 1} ${state} in ${((performance.now() - begunAt) / 1000).toFixed(1)} s; ${workers.length} workers\n`
  )
}
await Promise.race([Promise.all(running), wait(ms * 1.5)])
const told = (await deck.history('limit=200')).filter(({ type }) =>
  ['worker.drained', 'worker.exited', 'worker.requests-cut'].includes(type)
)
for (const { message } of told.reverse()) process.stderr.write(`${message}\n`)
const kinds = ['upload', 'download', 'event stream', 'stalled upload']
console.log(
  toTable(['kind', 'begun', 'complete', 'failed', 'how', 'they took s', 'longest silence ms'], kinds.map((kind) => {
    const those = outcomes.filter((outcome) => outcome.kind === kind)
    const failed = those.filter(({ failure }) => failure !== null)
    const seconds = those.map((outcome) => outcome.seconds)
    return [kind, EACH, those.length - failed.length, failed.length, Object.entries(countBy(failed, ({ failure }) =>
      String(failure))).map(([failure, count]) => `${count} × ${failure}`).join(', ') || '–',
      seconds.length === 0 ? '–' : `${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)}`,
      Math.round(Math.max(0, ...those.map(({ longestSilenceMs }) =>
        longestSilenceMs
      )))]
  }))
)
await owner.end()
process.exit()

async function watchOne (begin: typeof upload) {
  const outcome = await begin({ port, ms })
  outcomes.push(outcome)
  if (outcome.failure)
    process.stderr.write(`${outcome.kind}: ${outcome.failure} after ${outcome.seconds.toFixed(1)} s\n`)
}
