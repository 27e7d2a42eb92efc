import cluster from 'node:cluster'
import { DeckError } from '../errors.js'

/** Set by the one master of this process that hands out its connections. */
let isTaken = false

/**
 * How node:cluster hands out connections, which is one thing for a whole process, and stays from its first fork on. Only
 * `round-robin` depends on it; and as node:cluster knows a socket by its address, two masters would serve each other's
 * clients.
 * @param {'shared' | 'sticky' | 'round-robin'} dispatch
 * @returns {{ release: () => void }} to be called when its workers have gone
 * @throws {DeckError} not-possible
 */
export function takePolicy (dispatch) {
  if (!cluster.isPrimary) throw new DeckError('not-possible', 'start: expected a process that may have workers, and this one is itself a worker of node:cluster')
  if (dispatch !== 'round-robin') {
    if (!isTaken && !isSettled()) cluster.schedulingPolicy = cluster.SCHED_NONE
    return { release () {} }
  }
  if (isTaken) throw roundRobinRefusal('another master of this process has it, and node:cluster would mix their connections')
  if (isSettled() && cluster.schedulingPolicy !== cluster.SCHED_RR) throw roundRobinRefusal('node:cluster keeps the policy that the first workers of this process had')
  cluster.schedulingPolicy = cluster.SCHED_RR
  isTaken = true
  return { release () { isTaken = false } }
}

/** Whether something has been forked, or is about to be. */
function isSettled () {
  return Object.keys(cluster.settings).length > 0
}

/** @param {string} reason */
function roundRobinRefusal (reason) {
  return new DeckError('not-possible', `dispatch: expected "shared", received "round-robin" (${reason})`)
}
