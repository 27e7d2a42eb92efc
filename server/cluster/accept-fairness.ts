import type { Cluster } from './cluster.ts'

/** Workers that start together report one after the other; this wait lets all be told at once. */
const TELL_AFTER_MS = 100

/** How connections are spread over workers that accept by themselves, see workers/even-accept.ts. */
export function createAcceptFairness (cluster: Cluster,
  later = (work: () => void, ms: number): unknown => setTimeout(work, ms).unref())
{
  /** by worker */
  const evenness: Map<number, boolean> = new Map()
  let isToTell = false
  cluster.on('left', (worker) => {
    evenness.delete(worker)
    tellEvenness()
  })

  return {
    /** `isEven`: whether it waits for its turn */
    heard (worker: number, isEven: boolean) {
      if (!cluster.handles.has(worker)) return
      evenness.set(worker, isEven)
      if (isToTell) return
      isToTell = true
      later(() => tellEvenness(), TELL_AFTER_MS)
    },

    /** `worker`: takes no more connections; one that it was woken for goes to the others */
    passOn: tellEvenness,

    /** Null: no worker has said so yet */
    isEven: (): boolean | null => evenness.size === 0 ? null : [...evenness.values()].every(Boolean)
  }

  function tellEvenness (leaving?: number) {
    isToTell = false
    const inTurn = [...evenness].filter(([worker, isEven]) => isEven && worker !== leaving).map(([worker]) => worker)
    for (const worker of inTurn) cluster.tell(worker, { type: 'accept-again', others: inTurn.length - 1 })
  }
}
