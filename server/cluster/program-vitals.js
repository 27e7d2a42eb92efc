import { createConnectionCounts } from '../system/connection-counts.js'
import { loadSocketDiagnostics } from '../system/socket-diagnostics.js'
import { createTreeUsage, pidsOf } from '../system/tree-usage.js'
import { lookAtTurnOfSecond } from '../../workers/look-together.js'

/** @typedef {import('../../workers/protocol.js').VitalsReport} VitalsReport */
/** @typedef {{ list: () => { worker: number, pid: number }[], onReport: (worker: number, report: VitalsReport) => void }} Programs of one app: those that run */
/** @typedef {{ worker: number, usage: ReturnType<typeof createTreeUsage>, at: number, cpuMs: number | null, openConnections: number | undefined }} Watched */

/** After it took so long, measuring rests for a hundred times that. */
const REST = 100

/** Of all apps in this process: the kernel is asked once for all. @type {Set<Programs>} */
const sources = new Set()
/** By the pid of their first process. @type {Map<number, Watched>} */
const watched = new Map()
/** @type {ReturnType<typeof createConnectionCounts> | null | undefined} */
let countConnections
let restsUntil = 0
/** @type {(() => void) | undefined} */
let stopLooking

/**
 * Measures programs that cannot report by themselves, each second: from outside, with all processes that they have started.
 * @param {Programs} programs
 * @returns {() => void} stops
 */
export function measurePrograms (programs) {
  sources.add(programs)
  // As all workers report.
  stopLooking ??= lookAtTurnOfSecond(measureAll)
  return function stop () {
    sources.delete(programs)
    if (sources.size > 0) return
    stopLooking?.()
    stopLooking = undefined
  }
}

function measureAll () {
  const running = [...sources].flatMap(({ list, onReport }) => list().map(({ worker, pid }) => ({ worker, pid, onReport })))
  for (const [pid, { worker }] of watched) if (!running.some((each) => each.pid === pid && each.worker === worker)) watched.delete(pid)
  if (running.length === 0) return
  const trees = new Map(running.map(({ pid }) => [pid, pidsOf(pid)]))
  lookAtConnections(trees)
  for (const { worker, pid, onReport } of running) {
    const report = reportOf(pid, worker, trees.get(pid) ?? [])
    if (report) onReport(worker, report)
  }
}

/** @param {Map<number, number[]>} trees */
function lookAtConnections (trees) {
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

/** @param {number} pid @param {number} worker @param {number[]} pids @returns {VitalsReport | null} null: it is too early, or it has ended */
function reportOf (pid, worker, pids) {
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

/** @param {number} value @param {number} parts of a whole */
function roundTo (value, parts) {
  return Math.round(value * parts) / parts
}
