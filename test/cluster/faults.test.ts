import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { FAULTS, type Fault } from '../faults/faults.ts'
import { LOADS, SHORT } from '../faults/loads.ts'
import { isRowClean, summarize } from '../faults/report.ts'
import { tryFault } from '../faults/trial.ts'
import { rareTest } from '../support/rare.ts'

/** A third of the requests finds what is lost in a handover as well, for a third of the CPU time. */
const CALM = LOADS.map((load) => ({ ...load, pauseMs: 3 * load.pauseMs }))

describe('the matrix of faults, in short', () => {
  rareTest(
    'a deploy, the SIGKILL of a worker, that of the master and SIGTERM to all, one after the other: clean under every load',
    async (t) => {
      const faults = ['deploy', 'kill-one', 'master-kill', 'sigterm'].map((name) =>
        FAULTS.find((each) => each.name === name) as Fault
      )
      const row = await tryFault(t, { name: 'sequence', title: 'one after the other', isLast: true, async act (site) {
        for (const fault of faults) await fault.act(site)
      } }, CALM, SHORT)
      t.diagnostic(summarize(row))
      assert.ok(isRowClean(row), summarize(row))
    }
  )

  rareTest('it sees what is not clean: workers that die and nobody has said so', async (t) => {
    const row = await tryFault(t, { name: 'secret', title: 'secret', async act (site) {
      const pids = await site.workers()
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      for (const pid of pids)
        await site.deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, 'its end')
      await site.untilReady()
    } }, CALM.filter(({ name }) => name === 'slow'), SHORT)
    const { failed, excusable } = row.cells.slow
    assert.deepEqual([failed > 0, excusable], [true, 0])
    assert.deepEqual(row.problems.map((problem) => problem.replace(/\d+/, 'N')), [
      'process N ended by killed, and nobody did that',
      'process N ended by killed, and nobody did that'
    ])
    assert.equal(isRowClean(row), false)
  })
})
