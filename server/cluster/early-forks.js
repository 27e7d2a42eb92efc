/** @typedef {Extract<import('../lifecycle/state.js').Command, { type: 'fork' }>} Order */
/** @typedef {import('./worker-handle.js').WorkerHandle} Handle */

/**
 * Forks what will take the place of a lost worker before anything is read or written for its end, which takes longer than the fork.
 * Whoever decides then, knowing all, takes the worker; one that nobody has taken is ended: it has not heard anything yet.
 * @param {object} parts
 * @param {(order: Order, isWanted: () => boolean) => Handle} parts.start  `isWanted`: whether anybody is to hear of it
 */
export function createEarlyForks ({ start }) {
  /** @type {Map<number, { order: Order, handle: Handle, isWanted: boolean }>} by worker */
  const started = new Map()

  return {
    /** @param {import('../lifecycle/state.js').Command[]} commands  what would be done if nothing more were known */
    fork (commands) {
      for (const command of commands) {
        if (command.type === 'fork') startOne(command)
      }
    },

    /** @param {Order} order @returns {Handle | null} null: it was not forked yet, or for another slot or release */
    take ({ worker, slot, release }) {
      const found = started.get(worker)
      if (found?.order.slot !== slot || found.order.release.id !== release.id) return null
      started.delete(worker)
      return found.handle
    },

    /** All has been decided: what is left is not needed. */
    drop () {
      for (const [worker, one] of started) {
        started.delete(worker)
        one.isWanted = false
        one.handle.kill()
      }
    }
  }

  /** @param {Order} order */
  function startOne (order) {
    /** @type {{ order: Order, handle: Handle, isWanted: boolean }} */
    const one = { order, isWanted: true, handle: /** @type {any} */ (null) }
    try {
      one.handle = start(order, () => one.isWanted)
      started.set(order.worker, one)
    } catch {
      // It is tried again where it has been decided, and then told of.
    }
  }
}
