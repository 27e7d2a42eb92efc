import { DEPLOY_TYPES } from '../../public/mark-clusters.ts'
import { readOr } from '../dashboard/read-or.ts'
import type { History } from '../../db/history.ts'

/** Charts mark deploys and exits of workers. */
const MARKED_TYPES = Object.freeze(['worker.exited', ...DEPLOY_TYPES])

/**
 * Lets an open page know that there is something new to mark, so that it asks only then.
 * @returns the newest of these events; null: there is none, or the history cannot be read
 */
export function newestMark (history: Pick<History, 'page'>): number | null {
  return readOr(() => history.page({ type: [...MARKED_TYPES], limit: 1 }).items[0]?.id ?? null, null)
}
