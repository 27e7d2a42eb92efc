/**
 * The moments in which the clients of a replaced worker may be told to come back: one after the other, as a worker that has
 * just started answers its first requests slowly, and would be asked by all of them at once.
 * @param {() => number} [now] ms
 */
export function createTurns (now = () => performance.now()) {
  /** By `now`. @type {WeakMap<object, number>} */
  const turns = new WeakMap()

  return {
    /** @param {Iterable<object>} clients  connections or sessions, in their order @param {number} withinMs  0: all at once */
    give (clients, withinMs) {
      const all = [...clients]
      const beganAt = now()
      all.forEach((client, index) => turns.set(client, beganAt + withinMs * index / all.length))
    },

    /** @param {object} client  one without a turn has come later, and need not wait */
    hasCome: (client) => now() >= (turns.get(client) ?? 0)
  }
}
