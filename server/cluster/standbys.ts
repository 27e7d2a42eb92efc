import type { Cluster } from './cluster.ts'

/** Keeps standby workers waiting where they listen: their requests for sockets are answered once they have a slot. */
export function createStandbys (cluster: Cluster) {
  /** by worker */
  const known: Map<number, { waiting: (() => void)[], rssBytes: number | null }> = new Map()
  cluster.on('left', (worker) => known.delete(worker))

  return {
    /** Tells whether it has no slot yet */
    has: (worker: number): boolean => cluster.state.workers[worker]?.slot === null,

    /** `answer`: what it asks for where it listens */
    hold (worker: number, answer: () => void) {
      standbyOf(worker).waiting.push(answer)
      cluster.receive({ type: 'worker-held', worker })
    },

    /** `hear`: what it says too early */
    defer (worker: number, hear: () => void) {
      standbyOf(worker).waiting.push(hear)
    },

    /** `slot`: that it serves from now on */
    promote (worker: number, slot: number) {
      const { waiting } = standbyOf(worker)
      known.delete(worker)
      cluster.tell(worker, { type: 'promote', slot })
      for (const each of waiting) each()
    },

    note (worker: number, { rssBytes }: { rssBytes?: unknown }) {
      if (typeof rssBytes === 'number' && Number.isSafeInteger(rssBytes) && rssBytes >= 0)
        standbyOf(worker).rssBytes = rssBytes
    },

    /** Null: it has not said so yet */
    rssBytesOf: (worker: number): number | null => known.get(worker)?.rssBytes ?? null
  }

  function standbyOf (worker: number) {
    const one = known.get(worker) ?? { waiting: [], rssBytes: null }
    known.set(worker, one)
    return one
  }
}
