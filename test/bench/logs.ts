// Two workers write 200 MB at full speed through rotation: every line once, in order, none torn; and what it costs the
// master, as a share of what the workers use: `node test/bench/logs.ts [megabytes]`
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { startDeck } from '../support/deck.ts'
import { checkLines } from '../support/log-lines.ts'
import { createOwner } from '../support/owner.ts'

const MEGABYTES = Number(process.argv[2] ?? 200)
const WORKERS = 2
const TICK_MS = 10
// Of proc_pid_stat(5): user and system time, its own or of the children that have ended, here the archivers.
const [OWN, CHILDREN] = [11, 13]
const bytesEach = MEGABYTES * 1e6 / WORKERS

const owner = createOwner()
// Measured from after its start to the end of the writing; an idle time of the same length tells what it uses anyway.
const deck = await startDeck(owner, 'writes-lines.js', { workers: WORKERS, args: [String(bytesEach)],
  flags: ['--logs-max-files', '1000', '--ready-timeout-ms', '300000'] })
const startedAt = performance.now()
const [before, archivedBefore] = [cpuMs(deck.masterPid), cpuMs(deck.masterPid, CHILDREN)]
await deck.until({ ready: WORKERS })
const tookMs = performance.now() - startedAt
const used = cpuMs(deck.masterPid) - before
const archivers = cpuMs(deck.masterPid, CHILDREN) - archivedBefore
await new Promise((resolve) => setTimeout(resolve, tookMs))
const idle = cpuMs(deck.masterPid) - before - used
await owner.end()

const slots = Array.from({ length: WORKERS }, (_, index) => checkLines(path.join(deck.folder, 'logs'), index + 1))
const workersMs = slots.flatMap(({ writers }) => [...writers.values()]).reduce((sum, { cpuMs: ms }) => sum + Number(ms),
  0)
for (const [index, { bytes, files, writers }] of slots.entries()) {
  console.log(
    `slot ${index + 1}: ${(bytes / 1e6).toFixed(1)} MB in ${files} files, ${
      [...writers.values()][0].lines
    } lines, each once, in order and whole`
  )
}
console.log(
  `${
    (tookMs / 1000).toFixed(1)
  } s; CPU: workers ${workersMs} ms, master ${used} ms, of which ${idle} ms in as long an idle time; for the logs ${
    ((used - idle) / workersMs * 100).toFixed(2)
  } %; archivers ${archivers} ms`
)

function cpuMs (pid: number, first: number = OWN) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[first]) + Number(fields[first + 1])) * TICK_MS
}
