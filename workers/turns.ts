/**
 * The moments in which the clients of a replaced worker may be told to come back: one after the other, as a worker that
 * has just started answers its first requests slowly, and would be asked by all of them at once. `now`: ms.
 */
export function createTurns (now: () => number = () => performance.now()) {
  /** By `now`. */
  const turns: WeakMap<object, number> = new WeakMap()

  return {
    /** `clients`: connections or sessions, in their order; `withinMs`: 0: all at once */
    give (clients: Iterable<object>, withinMs: number) {
      const all = [...clients]
      const beganAt = now()
      all.forEach((client, index) => turns.set(client, beganAt + withinMs * index / all.length))
    },

    /** `client`: one without a turn has come later, and need not wait */
    hasCome: (client: object) => now() >= (turns.get(client) ?? 0)
  }
}
