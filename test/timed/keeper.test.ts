import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { countDescriptors } from '../support/process-figures.ts'
import { startReady } from '../support/deck.ts'

const AT_REST_MS = 2000
/** The time of a process is counted in whole ticks, and who runs when a tick comes has the whole of it. */
const WINDOWS = 3

test('workers that a debugger can be attached to start as ever; at rest their keeper takes no CPU time, no descriptor and less than 20 MB that are its own', async (t) => {
  const deck = await startReady(t, 'answers-with-pid.js', { flags: ['--exec-argv=--inspect'] })
  assert.equal((await deck.rollout('restart')).state, 'succeeded')
  await deck.until({ ready: 2 })
  const pid = Number(deck.child.pid)
  const open = countDescriptors(pid)
  const ticks = []
  while (ticks.length < WINDOWS) {
    const before = cpuTicks(pid)
    await new Promise((resolve) => setTimeout(resolve, AT_REST_MS))
    ticks.push(cpuTicks(pid) - before)
  }
  const dirtyKb = privateDirtyKb(pid)
  t.diagnostic(`${ticks} ticks in ${AT_REST_MS} ms each, ${dirtyKb} kB`)
  assert.ok(Math.min(...ticks) <= 1, `${ticks} ticks`)
  assert.ok(dirtyKb < 20_000, `${dirtyKb} kB`)
  assert.equal(countDescriptors(pid), open)
})

/** utime and stime of proc_pid_stat(5). */
function cpuTicks (pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [utime, stime] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13)
  return Number(utime) + Number(stime)
}

/** What is written by this process alone: the heap and stacks, not node's own code, which all processes share. */
function privateDirtyKb (pid: number) {
  return Number(/^Private_Dirty: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1])
}
