import { Worker } from 'node:worker_threads'
import { isPattern } from '../../public/log-query.ts'
import { DeckError } from '../errors.ts'
import { createSemaphore } from '../system/semaphore.ts'
import { scriptPath } from '../system/built.ts'
import type { Log } from './log-files.ts'
import type { Level } from '../../public/log-levels.ts'

/**
 * Looks for lines in all the files of the logs, which may be larger than memory: in a thread of its own, one at a time
 * for an app.
 */
/** where a line begins */
export type Place = { log: Log, position: number }
export type Line = Log & { text: string, position: number, arrivedAt: number | null }
export type Wanted = {
  logs: Log[],
  /** at most so many, the newest that match */
  lines: number,
  /** see public/log-query.ts */
  q?: string,
  level?: readonly Level[],
  /** ms since the epoch */
  since?: number,
  until?: number,
  /** half of the lines from before this time or this line, half from after it */
  around?: number | Place,
  /** only what comes before these places, which an earlier answer has told */
  before?: Place[],
  /** how long it may look */
  budgetMs?: number
}
/** `items`: oldest first; `next`: where to look further; null: all has been looked at */
export type Found = { items: Line[], next: Place[] | null }

const THREAD = scriptPath('search-thread.js')
const BUDGET_MS = 4000
/** How much longer a search may take on a disk that answers slowly. */
const PATIENCE_MS = 10_000
const MAX_WAITING = 8
const MAX_HEAP_MB = 256
/** Of all apps in this process: two, so that a slow search of one app holds up no other one. */
const THREADS = createSemaphore(2)

export type Search = ReturnType<typeof createSearch>

export function createSearch ({ folder }: { folder: string }) {
  let waiting = 0
  const turns = createSemaphore(1)
  let thread: Worker | null = null
  let isStopped = false

  return {
    /** @throws {DeckError} `rate-limited`, `timed-out` */
    async find (wanted: Wanted): Promise<Found> {
      if (waiting === MAX_WAITING)
        throw new DeckError('rate-limited',
          `The logs are searched already, and ${MAX_WAITING - 1} more wait for their turn; try again in some seconds`)
      waiting++
      try {
        return await turns.run(() => THREADS.run(() => runSearch(wanted)))
      } finally {
        waiting--
      }
    },

    async stop () {
      isStopped = true
      await thread?.terminate()
    }
  }

  async function runSearch (wanted: Wanted): Promise<Found> {
    if (isStopped) throw new DeckError('stopping', 'The master is stopping')
    // Without the options of this process: they may be such as no thread takes.
    const one = thread = new Worker(THREAD, { execArgv: [], env: {},
      workerData: { budgetMs: BUDGET_MS, ...wanted, folder }, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const hint = wanted.q !== undefined && isPattern(wanted.q) ? '. Try a simpler regular expression' : ''
    let timer
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(
          () =>
            reject(new DeckError('timed-out', `The search was not done within ${BUDGET_MS + PATIENCE_MS} ms${hint}`)),
          BUDGET_MS + PATIENCE_MS
        )
        one.once('message', resolve)
        one.once('error', reject)
        one.once('exit', () =>
          reject(isStopped
            ? new DeckError('stopping', 'The master is stopping')
            : new Error('the search of the logs ended without an answer')))
      })
    } finally {
      clearTimeout(timer)
      thread = null
      await one.terminate()
    }
  }
}
