import cluster from 'node:cluster'
import { DeckError } from '../errors.ts'

/**
 * How node:cluster hands out connections, which is one thing for a whole process, and stays from its first fork on.
 * Only `round-robin` depends on it, so a process of ours has that from its start, whichever app comes first.
 * `isGuest`: the process is another program's, which may have workers of its own.
 * @throws {DeckError} not-possible
 */
export function takePolicy (dispatch: 'shared' | 'sticky' | 'round-robin',
  { isGuest = false }: { isGuest?: boolean } = {})
{
  if (!cluster.isPrimary)
    throw new DeckError('not-possible',
      'start: expected a process that may have workers, and this one is itself a worker of node:cluster')
  if (isGuest && dispatch !== 'round-robin') return
  if (!isSettled()) cluster.schedulingPolicy = cluster.SCHED_RR
  if (dispatch === 'round-robin' && cluster.schedulingPolicy !== cluster.SCHED_RR) {
    throw new DeckError('not-possible',
      'dispatch: expected "shared", received "round-robin" (node:cluster keeps the policy that the first workers of this process had)')
  }
}

/** Whether something has been forked, or is about to be. */
function isSettled () {
  return Object.keys(cluster.settings).length > 0
}
