import type { WorkerHandle } from './worker-handle.ts'

export type AcceptFairness = ReturnType<typeof createAcceptFairness>

/** Workers that start together report one after the other; this wait lets all be told at once. */
const TELL_AFTER_MS = 100

/** How connections are spread over workers that accept by themselves, see workers/even-accept.ts. */
export function createAcceptFairness (
  { handles, later = (work, ms) => setTimeout(work, ms).unref() }: { handles: Map<number, Pick<WorkerHandle, 'tell'>>,
    later?: (work: () => void, ms: number) => unknown }
) {
  /** by worker */
  const evenness: Map<number, boolean> = new Map()
  let isToTell = false

  return {
    /** `isEven`: whether it waits for its turn */
    heard (worker: number, isEven: boolean) {
      if (!handles.has(worker)) return
      evenness.set(worker, isEven)
      if (isToTell) return
      isToTell = true
      later(() => tellEvenness(), TELL_AFTER_MS)
    },

    /** `worker`: takes no more connections; one that it was woken for goes to the others */
    passOn: tellEvenness,

    left (worker: number) {
      evenness.delete(worker)
      tellEvenness()
    },

    /** Null: no worker has said so yet */
    isEven: (): boolean | null => evenness.size === 0 ? null : [...evenness.values()].every(Boolean)
  }

  function tellEvenness (leaving?: number) {
    isToTell = false
    const inTurn = [...evenness].filter(([worker, isEven]) => isEven && worker !== leaving).map(([worker]) => worker)
    for (const worker of inTurn) handles.get(worker)?.tell({ type: 'accept-again', others: inTurn.length - 1 })
  }
}
