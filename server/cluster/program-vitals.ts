import { createConnectionCounts } from '../system/connection-counts.ts'
import { loadSocketDiagnostics } from '../system/socket-diagnostics.ts'
import { createTreeUsage, pidsOf } from '../system/tree-usage.ts'
import { lookAtTurnOfSecond } from '../../workers/look-together.ts'
import { runtimeOf } from '../lifecycle/state.ts'
import type { VitalsReport } from '../../workers/protocol.ts'
import type { Cluster } from './cluster.ts'
import type { createMessages } from './messages.ts'

type Source = { cluster: Cluster, messages: Pick<ReturnType<typeof createMessages>, 'hear'> }
type Watched = { worker: number, usage: ReturnType<typeof createTreeUsage>, at: number, cpuMs: number | null,
  openConnections: number | undefined }

/** After it took so long, measuring rests for a hundred times that. */
const REST = 100

/** Of all apps in this process: the kernel is asked once for all. */
const sources: Set<Source> = new Set()
/** By the pid of their first process. */
const watched: Map<number, Watched> = new Map()
let countConnections: ReturnType<typeof createConnectionCounts> | null | undefined
let restsUntil = 0
let stopLooking: (() => void) | undefined

/**
 * Measures programs that cannot report by themselves, each second: from outside, with all processes that they have
 * started.
 * @returns stops
 */
export function measurePrograms (cluster: Source['cluster'], messages: Source['messages']): () => void {
  const source = { cluster, messages }
  sources.add(source)
  // As all workers report.
  stopLooking ??= lookAtTurnOfSecond(measureAll)
  return function stop () {
    sources.delete(source)
    if (sources.size > 0) return
    stopLooking?.()
    stopLooking = undefined
  }
}

function measureAll () {
  const running = [...sources].flatMap(({ cluster: { state }, messages }) =>
    Object.values(state.workers).flatMap(({ id: worker, pid, state: its, release }) =>
      pid !== null && its !== 'exited' && runtimeOf(state, release) === 'other' ? [{ worker, pid, messages }] : []
    )
  )
  for (const [pid, { worker }] of watched)
    if (!running.some((each) => each.pid === pid && each.worker === worker)) watched.delete(pid)
  if (running.length === 0) return
  const trees = new Map(running.map(({ pid }) => [pid, pidsOf(pid)]))
  lookAtConnections(trees)
  for (const { worker, pid, messages } of running) {
    const report = reportOf(pid, worker, trees.get(pid) ?? [])
    if (report) messages.hear(worker, { type: 'vitals', ...report })
  }
}

function lookAtConnections (trees: Map<number, number[]>) {
  const began = performance.now()
  if (began < restsUntil) return
  if (countConnections === undefined) {
    const diagnostics = loadSocketDiagnostics()
    countConnections = diagnostics && createConnectionCounts(diagnostics)
  }
  const counts = countConnections?.(trees)
  for (const [pid, each] of watched) each.openConnections = counts?.get(pid)
  restsUntil = performance.now() + (performance.now() - began) * REST
}

/** Null: it is too early, or it has ended */
function reportOf (pid: number, worker: number, pids: number[]): VitalsReport | null {
  const at = performance.now()
  const before = watched.get(pid) ?? { worker, usage: createTreeUsage(), at, cpuMs: null, openConnections: undefined }
  const usage = before.usage.measure(pids)
  if (!usage) return null
  watched.set(pid, { ...before, at, cpuMs: usage.cpuMs })
  const intervalMs = at - before.at
  if (before.cpuMs === null || intervalMs <= 0) return null
  const { rssBytes, processes, threads, descriptors } = usage
  return {
    intervalMs: roundTo(intervalMs, 10),
    rssBytes,
    // What a process took that nobody has waited for is not counted any more once it has ended.
    cpuPercent: roundTo(Math.max(0, usage.cpuMs - before.cpuMs) / intervalMs * 100, 10),
    processes,
    threads,
    descriptors,
    ...(before.openConnections === undefined ? {} : { openConnections: before.openConnections })
  }
}

/** `parts`: of a whole */
function roundTo (value: number, parts: number) {
  return Math.round(value * parts) / parts
}
