import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { isPattern } from '../../public/log-query.js'
import { DeckError } from '../errors.js'
import { createSemaphore } from '../system/semaphore.js'

/**
 * Looks for lines in all the files of the logs, which may be larger than memory: in a thread of its own, one at a time for an app.
 * @typedef {import('./log-files.js').Log} Log
 * @typedef {{ log: Log, position: number }} Place  where a line begins
 * @typedef {Log & { text: string, position: number, arrivedAt: number | null }} Line
 * @typedef {object} Wanted
 * @property {Log[]} logs
 * @property {number} lines  at most so many, the newest that match
 * @property {string} [q]  see public/log-query.js
 * @property {readonly import('../../public/log-levels.js').Level[]} [level]
 * @property {number} [since]  ms since the epoch
 * @property {number} [until]
 * @property {number | Place} [around]  half of the lines from before this time or this line, half from after it
 * @property {Place[]} [before]  only what comes before these places, which an earlier answer has told
 * @property {number} [budgetMs]  how long it may look
 * @typedef {{ items: Line[], next: Place[] | null }} Found
 *   `items`: oldest first; `next`: where to look further; null: all has been looked at
 */

const THREAD = fileURLToPath(new URL('./search-thread.js', import.meta.url))
const BUDGET_MS = 4000
/** How much longer a search may take on a disk that answers slowly. */
const PATIENCE_MS = 10_000
const MAX_WAITING = 8
const MAX_HEAP_MB = 256
/** Of all apps in this process: two, so that a slow search of one app holds up no other one. */
const THREADS = createSemaphore(2)

/** @param {{ folder: string }} parts */
export function createSearch ({ folder }) {
  let waiting = 0
  /** @type {Promise<unknown>} */
  let last = Promise.resolve()
  /** @type {Worker | null} */
  let thread = null
  let isStopped = false

  return {
    /** @param {Wanted} wanted @returns {Promise<Found>} @throws {DeckError} `rate-limited`, `timed-out` */
    async find (wanted) {
      if (waiting === MAX_WAITING) throw new DeckError('rate-limited', `The logs are searched already, and ${MAX_WAITING - 1} more wait for their turn; try again in some seconds`)
      waiting++
      const found = last.then(() => THREADS.run(() => runSearch(wanted)))
      last = found.catch(() => {})
      try {
        return await found
      } finally {
        waiting--
      }
    },

    async stop () {
      isStopped = true
      await thread?.terminate()
    }
  }

  /** @param {Wanted} wanted @returns {Promise<Found>} */
  async function runSearch (wanted) {
    if (isStopped) throw new DeckError('stopping', 'The master is stopping')
    // Without the options of this process: they may be such as no thread takes.
    const one = thread = new Worker(THREAD, { execArgv: [], env: {}, workerData: { budgetMs: BUDGET_MS, ...wanted, folder }, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const hint = wanted.q !== undefined && isPattern(wanted.q) ? '. Try a simpler regular expression' : ''
    let timer
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new DeckError('timed-out', `The search was not done within ${BUDGET_MS + PATIENCE_MS} ms${hint}`)), BUDGET_MS + PATIENCE_MS)
        one.once('message', resolve)
        one.once('error', reject)
        one.once('exit', () => reject(isStopped ? new DeckError('stopping', 'The master is stopping') : new Error('the search of the logs ended without an answer')))
      })
    } finally {
      clearTimeout(timer)
      thread = null
      await one.terminate()
    }
  }
}
