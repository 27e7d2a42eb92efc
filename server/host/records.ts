import { mkdirSync, readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { RUNS } from '../app/runs.ts'
import { DECK_NAME } from '../config/apps.ts'
import { APP_ORDER } from '../config/orders.ts'
import { DeckError, errorReason } from '../errors.ts'
import { readJson, storeJson, syncFolder } from '../system/json-file.ts'
import type { Log } from '../system/log.ts'

export type AppOrder = z.infer<typeof APP_ORDER>
/**
 * What a host knows of an app, from one start of it to the next. `id`: what tells it from others of its name, before
 * and after it; `wish`: what somebody has asked for last; `order`: how it is to be started, as somebody has asked last;
 * `runs`: what the next start goes on with.
 */
export type AppRecord = z.infer<typeof RECORD>
export type Records = ReturnType<typeof createRecords>

const RECORD = z.strictObject({ version: z.literal(1), id: z.string().regex(/^[\w-]+$/),
  name: z.string().regex(DECK_NAME), dataDir: z.string(), wish: z.enum(['running', 'stopped']), order: APP_ORDER,
  runs: RUNS.nullable() })
const TRY_AGAIN_MS = 5000

/**
 * The records of the apps of a host, a file each. `folder`: of the host; `onProblem`: why they cannot be written; null:
 * all are.
 */
export function createRecords (
  { folder, log, onProblem, tryAgainMs = TRY_AGAIN_MS }: { folder: string, log: Log,
    onProblem: (reason: string | null) => void, tryAgainMs?: number }
) {
  const place = path.join(folder, 'apps')
  /** What is to be written, by id, until it is; null: it is to be removed. */
  const unsaved: Map<string, AppRecord | null> = new Map()
  /** Writes come one after the other. */
  let turn: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout | null = null
  let problem: string | null = null
  let isClosed = false

  return {
    /** Returns those that can be read. */
    read (): AppRecord[] {
      mkdirSync(place, { recursive: true, mode: 0o700 })
      return readdirSync(place).filter((name) => name.endsWith('.json')).flatMap((name) => {
        const file = path.join(place, name)
        const { data, error } = RECORD.safeParse(readJson(file))
        if (data && name === `${data.id}.json`) return [data]
        // It may be of a newer version.
        log.error({ err: error, file },
          'the record of an app cannot be read; it is left as it is, and the app left out')
        return []
      })
    },

    /**
     * Resolves once the disk has it. Where that fails, it is tried again until it does.
     * @throws {DeckError} not-stored
     */
    save: (record: AppRecord): Promise<void> => put(record.id, record),

    /** @throws {DeckError} not-stored */
    remove: (id: string): Promise<void> => put(id, null),

    /** Why some of it is in memory alone; null: the disk has all of it. */
    get problem () {
      return problem
    },

    /** From here on they are another master's. Resolves once this one writes nothing more. */
    async close () {
      isClosed = true
      if (timer) clearTimeout(timer)
      await turn
    }
  }

  async function put (id: string, record: AppRecord | null) {
    if (isClosed) return
    unsaved.set(id, record)
    const written = turn.then(() => write(id))
    turn = written.catch(() => {})
    await written
  }

  async function write (id: string) {
    const record = unsaved.get(id)
    // Somebody who came later has written it already.
    if (record === undefined) return
    try {
      const file = path.join(place, `${id}.json`)
      if (record) await storeJson(file, record)
      else {
        await rm(file, { force: true })
        await syncFolder(place)
      }
    } catch (error) {
      tellProblem(errorReason(error))
      if (!isClosed) timer ??= setTimeout(tryAgain, tryAgainMs).unref()
      throw new DeckError('not-stored',
        `this is done, but the host cannot write it down (${errorReason(error)}: ${place}); it tries again every ${
          tryAgainMs / 1000
        } s, and until then a start of the host does not know of it`, { cause: error })
    }
    if (unsaved.get(id) === record) unsaved.delete(id)
    if (unsaved.size === 0) tellProblem(null)
  }

  function tryAgain () {
    timer = null
    for (const [id, record] of unsaved) put(id, record).catch(() => {})
  }

  function tellProblem (reason: string | null) {
    if (problem === reason) return
    problem = reason
    onProblem(reason)
  }
}
