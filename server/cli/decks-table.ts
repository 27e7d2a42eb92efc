import path from 'node:path'
import { formatDuration } from '../../public/format.ts'
import { homeFolder } from '../system/home-folder.ts'
import { formatTable } from './output.ts'
import type { DeckStatus } from './deck-status.ts'
import type { Status } from '../api/cluster.ts'

/** One of several decks. */
export type Row = {
  name: string,
  dataDir: string | null,
  adminUrl: string | null,
  /** null: it does not run */
  answer: DeckStatus | null,
  /** why it does not run */
  state?: string,
  /** more about that */
  reason?: string | null
}
type AnyStatus = Status | null | undefined
type CellOf = (row: Row, status: AnyStatus, place: { now: number, home: string | null }) => string | null | undefined

/** The columns, by heading. */
const COLUMNS: Readonly<Record<string, [isNumber: boolean, cellOf: CellOf]>> = Object.freeze({
  NAME: [false, ({ name }) => name],
  HEALTH: [false, ({ answer, state = 'not running' }, status) =>
    answer ? status?.health.text ?? 'does not answer' : state],
  WORKERS: [true, (_, status) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  UPTIME: [false, (_, status, { now }) => status && formatDuration(now - Date.parse(status.master.startedAt))],
  APP: [false, (_, status) => status?.app.addresses.join(', ')],
  ADMIN: [false, ({ adminUrl }) => adminUrl],
  FOLDER: [false, ({ dataDir }, _, { home }) => belowHome(dataDir, home)],
  WHY: [false, ({ reason }) => reason]
})

/** `hasFolders`: with the column FOLDER. Returns a line each. */
export function decksTable (rows: Row[],
  { now, home = homeFolder(process.env), hasFolders = false }: { now: number, home?: string | null,
    hasFolders?: boolean }): string
{
  const columns = Object.keys(COLUMNS).filter((column) =>
    (column !== 'FOLDER' || hasFolders) && (column !== 'WHY' || rows.some(({ reason }) => reason))
  )
  const cells = rows.map((row) => columns.map((column) => COLUMNS[column][1](row, row.answer?.status, { now, home })))
  return formatTable(columns, cells, { right: [...columns.keys()].filter((index) => COLUMNS[columns[index]][0]) })
}

function belowHome (folder: string | null, home: string | null) {
  if (folder === null) return null
  if (folder === home) return '~'
  return home !== null && home !== path.parse(home).root && folder.startsWith(home + path.sep)
    ? `~${folder.slice(home.length)}`
    : folder
}

/** The same for scripts. */
export function deckView ({ name, dataDir, adminUrl, answer }: Row) {
  return { name, dataDir, adminUrl, isRunning: answer !== null, problem: answer?.problem ?? null,
    status: answer?.status ?? null }
}
