import { existsSync, renameSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { DECK_NAME } from '../config/apps.ts'
import { APP_ORDER } from '../config/orders.ts'
import { readJson, writeJson } from '../system/json-file.ts'
import type { Log } from '../system/log.ts'

export type AppOrder = z.infer<typeof APP_ORDER>
/**
 * `isStopped`: an operator has stopped it, so it is not started with the host; `id`: what tells it from others of its
 * name, before and after it
 */
export type Entry = z.infer<typeof ENTRY>

const ENTRY = z.strictObject({ name: z.string().regex(DECK_NAME), order: APP_ORDER, dataDir: z.string(),
  isStopped: z.boolean(), id: z.string().optional() })
const LIST = z.strictObject({ version: z.literal(1), apps: z.array(z.unknown()) })

/** The apps of a host, as they are remembered from one start of it to the next. `folder`: of the host. */
export function createAppList (folder: string, log: Log) {
  const file = path.join(folder, 'apps.json')
  /** What somebody else has written may be of a newer version, and stays. */
  const unreadable: unknown[] = []

  return {
    /** @returns those that can be read */
    read (): Entry[] {
      unreadable.length = 0
      const list = LIST.safeParse(readJson(file))
      if (!list.success) {
        setAside()
        return []
      }
      return list.data.apps.flatMap((each) => {
        const entry = ENTRY.safeParse(each)
        if (entry.success) return [entry.data]
        unreadable.push(each)
        log.warn({ err: entry.error }, 'an app of the list cannot be read, and is left out')
        return []
      })
    },

    /** @throws what the system says, as on a full disk */
    write (apps: Entry[]) {
      writeJson(file, { version: 1, apps: [...apps, ...unreadable] })
    }
  }

  /** Whoever wants the list back finds it beside the new one. */
  function setAside () {
    if (!existsSync(file)) return
    const kept = `${file}.unreadable-${Date.now()}`
    renameSync(file, kept)
    log.error({ file: kept }, 'the list of apps cannot be read; it is kept, and a new one begins')
  }
}
