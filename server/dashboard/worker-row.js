import { heldWords } from '../held-words.js'

/**
 * A row of a table of workers.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {{ id: number | null, slot: number, state: string, orphan: boolean, crashLooping: boolean, finished: { succeeded: boolean } | null, runtime?: 'node' | 'other', keptUntil?: string | null, holds?: import('../held-words.js').LongLived | null }} Worker
 */

/** How a worker, or a slot without one, can be. @type {Readonly<Record<string, { label: string, tone: Tone }>>} */
export const WORKER_KINDS = Object.freeze({
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
  finished: { label: 'Finished', tone: 'ok' }
})

/**
 * @template {Worker} W
 * @param {W} worker
 */
export function toWorkerRow (worker) {
  const kind = kindOf(worker)
  return {
    ...worker,
    key: `worker-${worker.slot}-${worker.id ?? 'none'}`,
    kind,
    held: kind === 'kept' ? heldWords(worker.holds) : null,
    badge: WORKER_KINDS[kind] ?? { label: kind, tone: 'idle' },
    canHear: worker.id !== null && worker.runtime !== 'other' && !worker.orphan && (worker.state === 'ready' || worker.state === 'draining'),
    canRestart: worker.id !== null && (worker.state === 'ready' || worker.state === 'unresponsive')
  }
}

/** @param {Worker} worker @returns {string} one of WORKER_KINDS, unless a newer master tells of another state */
function kindOf ({ state, crashLooping, finished, keptUntil }) {
  if (keptUntil) return 'kept'
  if (finished?.succeeded === false) return 'ended'
  return crashLooping && !finished ? 'crash-looping' : state
}

/**
 * Marks a row that follows another one of the same slot.
 * @template {{ slot: number }} R
 * @param {R} row @param {number} index @param {readonly R[]} all
 */
export function besideSlot (row, index, all) {
  return { ...row, isSecondOfSlot: all[index - 1]?.slot === row.slot }
}
