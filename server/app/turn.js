/** @typedef {import('../cluster/supervisor.js').Supervisor} Supervisor */
/** @typedef {import('../cluster/rollout-turn.js').Turns} Turns */

/**
 * Starts the workers of an app: at once, or when it is its turn among the apps of its host. Those that a master before has left serve
 * meanwhile.
 * @param {Supervisor} supervisor @param {{ turns: Turns | null }} host @param {Parameters<Supervisor['start']>[0]} order
 */
export function startInTurn (supervisor, { turns }, order) {
  supervisor.start({ ...order, awaitsTurn: turns !== null })
  if (turns) Promise.resolve(turns.take(Promise.race([supervisor.running, supervisor.startBlocked, supervisor.finished]))).then(supervisor.takeTurn)
}
