import { DEPLOY_TYPES } from '../../public/mark-clusters.js'
import { readOr } from './read-or.js'

/** What the charts mark: deploys, and workers that ended. */
const MARKED_TYPES = Object.freeze(['worker.exited', ...DEPLOY_TYPES])

/**
 * By it an open page knows that there is more to mark, and asks only then.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @returns {number | null} the newest event of those; null: there is none, or the history cannot be read
 */
export function newestMark (history) {
  return readOr(() => history.page({ type: [...MARKED_TYPES], limit: 1 }).items[0]?.id ?? null, null)
}
