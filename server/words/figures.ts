import type { Worker } from '../api/cluster.ts'

type Measured = {
  vitals: Pick<NonNullable<Worker['vitals']>, 'requestsPerSecond' | 'latencyP99Ms' | 'cpuPercent' | 'rssBytes'> | null
}

/**
 * What the workers of an app use and answer together, null where none has been measured yet. `cpu`: percent of a core;
 * `p99Ms`: of the slowest worker
 */
export function figuresOf (workers: (Measured & Pick<Worker, 'restarts'>)[]) {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  const latencies = vitals.flatMap(({ latencyP99Ms }) => latencyP99Ms ?? [])
  return { cpu: sumOf(vitals.map(({ cpuPercent }) => cpuPercent)),
    memoryBytes: sumOf(vitals.map(({ rssBytes }) => rssBytes)),
    requestsPerSecond: areRequestsCounted(workers)
      ? sumOf(vitals.map(({ requestsPerSecond }) => requestsPerSecond))
      : null, p99Ms: latencies.length === 0 ? null : Math.max(...latencies),
    restarts: sumOf(workers.map(({ restarts }) => restarts)) }
}

/** False: they are programs of another language, and only Node programs count them */
export function areRequestsCounted (workers: Measured[]): boolean {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  return vitals.length === 0 || vitals.some(({ requestsPerSecond }) => requestsPerSecond !== null)
}

/** Returns null: there is nothing to sum. */
function sumOf (values: (number | null)[]): number | null {
  return values.length === 0 ? null : values.reduce((total: number, value) => total + (value ?? 0), 0)
}
