import { statSync } from 'node:fs'
import path from 'node:path'
import { readPast, type Past } from '../../db/past.ts'
import { endOf, listLogs, liveFile, STREAMS } from '../logs/log-files.ts'
import { tailSync } from '../logs/reader.ts'
import { createSearch, type Search } from '../logs/search.ts'
import { createStamps } from '../logs/stamps.ts'
import { attempt } from '../errors.ts'

/** What is known of an app that does not run: its last events, its open crashes and its last words. */

/** Of an app whose data folder nobody knows. */
export const NO_PAST: Past = Object.freeze({ events: [], crashes: [], lines: [] })

/** Most are routine, which nobody wants to see. */
const EVENTS = 60
const CRASHES = 5
const LINES = 40
const MAX_BYTES = 64 * 1024

/** `folder`: its data folder. What cannot be read is empty: somebody wants to know why it does not run. */
export function pastOfApp (folder: string): Past {
  return {
    ...attempt(() => readPast(path.join(folder, 'history.db'), { events: EVENTS, crashes: CRASHES }), { events: [],
      crashes: [] }),
    lines: attempt(() => lastLines(path.join(folder, 'logs')), [])
  }
}

/** By their folders, as each holds back those who search too much. */
const searches: Map<string, Search> = new Map()

/** What searches the logs of an app that does not run. `dataDir`: of the app */
export function logsLeftIn (dataDir: string) {
  const folder = path.join(dataDir, 'logs')
  const search = searches.get(folder) ?? createSearch({ folder })
  searches.set(folder, search)
  const find: Search['find'] = async (wanted) => {
    // A master that was killed has not noted when the last lines came.
    wanted.logs.forEach(createStamps({ folder }).look)
    return await search.find(wanted)
  }
  const slots = [...new Set(listLogs(folder).map(({ slot }) => slot))].sort((a, b) => a - b)
  return { logs: { find, slots: () => slots },
    snapshot: () => ({ desiredWorkers: Math.max(0, ...slots), workers: [] }) }
}

/** @returns of the log that was written last, stderr before stdout */
function lastLines (folder: string): string[] {
  const logs = listLogs(folder).flatMap((log) => {
    const { size, mtimeMs } = statSync(liveFile(folder, log))
    return size === 0 ? [] : [{ log, mtimeMs }]
  })
  const rank = ({ log, mtimeMs }: typeof logs[number]) => [-STREAMS.indexOf(log.stream), -mtimeMs]
  const [last] = logs.sort((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1])
  return last
    ? tailSync(folder, last.log, { lines: LINES, from: 0, to: endOf(folder, last.log), maxBytes: MAX_BYTES })
    : []
}
