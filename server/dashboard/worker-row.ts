import { heldWords, type LongLived } from '../words/held.ts'
import type { Tone } from '../events/kinds.ts'

/** A row of a table of workers. */
type Worker = { id: number | null, slot: number, state: string, orphan: boolean, crashLooping: boolean,
  finished: { succeeded: boolean } | null, runtime?: 'node' | 'other', keptUntil?: string | null,
  holds?: LongLived | null }

/** How a worker, or a slot without one, can be. */
export const WORKER_KINDS: Readonly<Record<string, { label: string, tone: Tone }>> = Object.freeze({
  'crash-looping': { label: 'Crash-looping', tone: 'bad' },
  unresponsive: { label: 'Unresponsive', tone: 'bad' },
  held: { label: 'Held', tone: 'bad' },
  ended: { label: 'Ended', tone: 'bad' },
  backoff: { label: 'Restarting', tone: 'warn' },
  queued: { label: 'Waiting to start', tone: 'idle' },
  starting: { label: 'Starting', tone: 'info' },
  draining: { label: 'Draining', tone: 'drain' },
  kept: { label: 'Kept', tone: 'drain' },
  stopping: { label: 'Stopping', tone: 'idle' },
  ready: { label: 'Ready', tone: 'ok' },
  finished: { label: 'Finished', tone: 'ok' },
  gone: { label: 'Ended', tone: 'idle' }
})

export function toWorkerRow<W extends Worker> (worker: W) {
  const kind = kindOf(worker)
  return { ...worker, key: `worker-${worker.slot}-${worker.id ?? 'none'}`, kind,
    held: kind === 'kept' ? heldWords(worker.holds) : null, badge: WORKER_KINDS[kind] ?? { label: kind, tone: 'idle' },
    canHear: worker.id !== null && worker.runtime !== 'other' && !worker.orphan &&
      (worker.state === 'ready' || worker.state === 'draining'),
    canRestart: worker.id !== null && (worker.state === 'ready' || worker.state === 'unresponsive') }
}

/** @returns one of WORKER_KINDS, unless a newer master tells of another state */
function kindOf ({ state, crashLooping, finished, keptUntil }: Worker): string {
  if (keptUntil) return 'kept'
  if (finished?.succeeded === false) return 'ended'
  return crashLooping && !finished && state !== 'held' ? 'crash-looping' : state
}

/** Marks a row that follows another one of the same slot. */
export function besideSlot<R extends { slot: number }> (row: R, index: number, all: readonly R[]) {
  return { ...row, isSecondOfSlot: all[index - 1]?.slot === row.slot }
}
