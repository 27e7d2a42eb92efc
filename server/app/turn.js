/** @typedef {import('../cluster/supervisor.js').Supervisor} Supervisor */
/** @typedef {{ take: (over: Promise<unknown>) => Promise<void> }} Turns  `take`: waits for a turn, which ends with `over` */

/**
 * Starts the workers of an app: at once, or when it is its turn among the apps of its host. Those that a master before has left serve
 * meanwhile.
 * @param {Supervisor} supervisor @param {{ turns: Turns | null }} host @param {Parameters<Supervisor['start']>[0]} order
 */
export function startInTurn (supervisor, { turns }, order) {
  supervisor.start({ ...order, awaitsTurn: turns !== null })
  turns?.take(Promise.race([supervisor.running, supervisor.startBlocked, supervisor.finished])).then(supervisor.takeTurn)
}
