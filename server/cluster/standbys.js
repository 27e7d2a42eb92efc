/** @typedef {ReturnType<typeof createStandbys>} Standbys */

/**
 * Keeps standby workers waiting where they listen: their requests for sockets are answered once they have a slot.
 * @param {object} parts
 * @param {() => Pick<import('../lifecycle/state.js').PoolState, 'workers'>} parts.state
 * @param {(worker: number, message: import('../../workers/protocol.js').ToWorker) => void} parts.tell
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive
 */
export function createStandbys ({ state, tell, receive }) {
  /** @type {Map<number, { waiting: (() => void)[], rssBytes: number | null }>} by worker */
  const known = new Map()

  return {
    /** @param {number} worker @returns {boolean} whether it has no slot yet */
    has: (worker) => state().workers[worker]?.slot === null,

    /** @param {number} worker @param {() => void} answer  what it asks for where it listens */
    hold (worker, answer) {
      standbyOf(worker).waiting.push(answer)
      receive({ type: 'worker-held', worker })
    },

    /** @param {number} worker @param {() => void} hear  what it says too early */
    defer (worker, hear) { standbyOf(worker).waiting.push(hear) },

    /** @param {number} worker @param {number} slot that it serves from now on */
    promote (worker, slot) {
      const { waiting } = standbyOf(worker)
      known.delete(worker)
      tell(worker, { type: 'promote', slot })
      for (const each of waiting) each()
    },

    /** @param {number} worker @param {{ rssBytes?: unknown }} report */
    note (worker, { rssBytes }) {
      if (typeof rssBytes === 'number' && Number.isSafeInteger(rssBytes) && rssBytes >= 0) standbyOf(worker).rssBytes = rssBytes
    },

    /** @param {number} worker @returns {number | null} null: it has not said so yet */
    rssBytesOf: (worker) => known.get(worker)?.rssBytes ?? null,

    /** @param {number} worker */
    left (worker) { known.delete(worker) }
  }

  /** @param {number} worker */
  function standbyOf (worker) {
    const one = known.get(worker) ?? { waiting: [], rssBytes: null }
    known.set(worker, one)
    return one
  }
}
