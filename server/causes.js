/**
 * Why a worker, a slot or a master has ended: the `cause` of an event.
 * @typedef {typeof CAUSES[number]} Cause
 */

/** Ends that nobody has asked for. */
export const CRASH_CAUSES = Object.freeze(/** @type {const} */ (['crash', 'boot-failure', 'hung', 'out-of-memory', 'killed']))

/** Those that speak against a release. Who kills a process from outside says nothing of its code. */
export const BLAMED_CAUSES = Object.freeze(CRASH_CAUSES.filter((cause) => cause !== 'killed'))

/** What an operator wants to see. A worker that is replaced as it uses too much memory has not crashed. */
export const FAULTS = Object.freeze(/** @type {const} */ ([...CRASH_CAUSES, 'memory-limit']))

export const PLANNED_CAUSES = Object.freeze(/** @type {const} */ (['max-age', 'max-requests', 'app-request', 'finished', 'deploy', 'rollback', 'restart', 'scale-down', 'shutdown', 'upgrade']))

export const CAUSES = Object.freeze(/** @type {const} */ ([...FAULTS, ...PLANNED_CAUSES, 'operator', 'master-lost']))

/** @param {readonly string[]} causes @param {string | null | undefined} cause */
export function isOneOf (causes, cause) {
  return causes.includes(String(cause))
}
