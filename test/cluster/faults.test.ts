import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { FAULTS, type Fault } from '../faults/faults.ts'
import { LOADS, SHORT } from '../faults/loads.ts'
import { isRowClean, summarize } from '../faults/report.ts'
import { tryFault } from '../faults/trial.ts'
import { rareTest } from '../support/rare.ts'

/** A third of the requests finds what is lost in a handover as well, for a third of the CPU time. */
const CALM = LOADS.map((load) => ({ ...load, pauseMs: 3 * load.pauseMs }))

/** Each row happens to one deck, one fault after the other. */
const ROWS = [['deploy', 'kill-one', 'master-kill', 'sigterm'], ['restart', 'hang', 'kill-everybody', 'sigint'], [
  'scale-down',
  'bad-deploy',
  'kill-all',
  'upgrade'
]].map((names) => names.map((name) => FAULTS.find((each) => each.name === name) as Fault))

describe('the matrix of faults, in short', () => {
  for (const faults of ROWS) {
    rareTest(`${faults.map(({ title }) => title).join(', ')}: clean under every load`, async (t) => {
      const row = await tryFault(t, { name: 'row', title: 'one after the other', isLast: faults.some(({ isLast }) =>
        isLast
      ), async act (site) {
        for (const fault of faults) {
          await fault.act(site).catch((error) => {
            throw new Error(`${fault.title}: ${error.message}`, { cause: error.cause })
          })
        }
      } }, CALM, SHORT)
      t.diagnostic(summarize(row))
      assert.ok(isRowClean(row), summarize(row))
    })
  }

  rareTest('it sees what is not clean: workers that die and nobody has said so', async (t) => {
    const row = await tryFault(t, { name: 'secret', title: 'secret', async act (site) {
      const pids = await site.workers()
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      for (const pid of pids) await site.deck.untilEvent('worker.exited', { pid })
      await site.untilReady()
    } }, CALM.filter(({ name }) => name === 'slow'), SHORT)
    const { failed, excusable } = row.cells.slow
    assert.deepEqual([failed > 0, excusable], [true, 0])
    assert.deepEqual(row.problems.map((problem) => problem.replace(/\d+/, 'N')),
      Array(2).fill('process N ended by killed, and nobody did that'))
    assert.equal(isRowClean(row), false)
  })
})
