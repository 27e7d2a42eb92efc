import { mkdirSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { checkedRuns } from '../app/runs.ts'
import { DECK_NAME } from '../config/apps.ts'
import { APP_ORDER } from '../config/orders.ts'
import { readJson } from '../system/json-file.ts'
import { createKeptFile, type KeptFile } from '../system/kept-file.ts'
import type { Log } from '../system/log.ts'

/**
 * What a host knows of an app, from one start of it to the next. `id`: what tells it from others of its name, before
 * and after it; `wish`: what somebody has asked for last; `order`: how it is to be started, as somebody has asked last;
 * `runs`: what the next start goes on with.
 */
export type AppRecord = z.infer<typeof RECORD>
export type Records = ReturnType<typeof createRecords>

export const RECORD = z.strictObject({ version: z.literal(1), id: z.string().regex(/^[\w-]+$/),
  name: z.string().regex(DECK_NAME), dataDir: z.string(), wish: z.enum(['running', 'stopped']), order: APP_ORDER,
  runs: z.unknown().transform(checkedRuns) })

/** Returns `error`: why it is none, where its name is right. It may be of a newer version. */
export function readRecord (file: string): { record: AppRecord | null, error: Error | undefined } {
  const { data, error } = RECORD.safeParse(readJson(file))
  return { record: data && path.basename(file) === `${data.id}.json` ? data : null, error }
}

/**
 * The records of the apps of a host, a file each. `folder`: of the host; `onProblem`: why the disk does not take them;
 * null: it has all.
 */
export function createRecords (
  { folder, log, onProblem, tryAgainMs }: { folder: string, log: Log, onProblem: (reason: string | null) => void,
    tryAgainMs?: number }
) {
  const place = path.join(folder, 'apps')
  /** by id */
  const files: Map<string, KeptFile> = new Map()
  /** by id */
  const problems: Map<string, string> = new Map()

  return {
    /** Returns those that can be read. */
    read (): AppRecord[] {
      mkdirSync(place, { recursive: true, mode: 0o700 })
      return readdirSync(place).filter((name) => name.endsWith('.json')).flatMap((name) => {
        const file = path.join(place, name)
        const { record, error } = readRecord(file)
        if (record) return [record]
        log.error({ err: error, file },
          'the record of an app cannot be read; it is left as it is, and the app left out')
        return []
      })
    },

    /** Begins to write it, and waits for nothing. */
    save: (record: AppRecord) => fileOf(record.id).save(record),

    /** Begins to remove it, and waits for nothing. */
    remove: (id: string) => fileOf(id).save(null),

    /** Resolves once the disk has what was asked last of that record. @throws {DeckError} not-stored */
    stored: (id: string): Promise<void> => fileOf(id).stored(),

    /** Whether the disk has it. */
    isStored: (id: string): boolean => fileOf(id).isStored(),

    /** From here on they are another master's. Resolves once this one writes nothing more. */
    async close (): Promise<void> {
      await Promise.all([...files.values()].map((file) => file.close()))
    }
  }

  function fileOf (id: string): KeptFile {
    const file = files.get(id) ??
      createKeptFile(path.join(place, `${id}.json`), { tryAgainMs, onProblem: (reason) => note(id, reason) })
    files.set(id, file)
    return file
  }

  function note (id: string, reason: string | null) {
    const before = problems.size
    if (reason === null) problems.delete(id)
    else problems.set(id, reason)
    if ((before === 0) !== (problems.size === 0)) onProblem(reason)
  }
}
