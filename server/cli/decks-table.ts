import path from 'node:path'
import { formatBytes, formatDuration, formatPercent } from '../../public/format.ts'
import { figuresOf } from '../figures.ts'
import { homeFolder } from '../system/home-folder.ts'
import { formatTable } from './output.ts'
import type { DeckStatus } from './deck-status.ts'
import type { KnownApp } from './known-apps.ts'
import type { Status } from '../api/cluster.ts'

/** One of several apps. `answer`: of its master; null: it does not run. */
export type Row =
  & Pick<KnownApp, 'name' | 'dataDir' | 'adminUrl'>
  & Partial<Pick<KnownApp, 'reason' | 'nextTryAt'>>
  & { answer: DeckStatus | null, state?: string }
type AnyStatus = Status | null | undefined
type CellOf = (row: Row, status: AnyStatus, place: { now: number, home: string | null }) => string | null | undefined

/** The columns, by heading. */
const COLUMNS: Readonly<Record<string, [isNumber: boolean, cellOf: CellOf]>> = Object.freeze({
  NAME: [false, ({ name }) => name],
  HEALTH: [false, ({ answer, state = 'not running', nextTryAt }, status, { now }) => {
    if (answer) return status?.health.text ?? 'does not answer'
    return nextTryAt ? `${state}, next try in ${formatDuration(Math.max(1000, Date.parse(nextTryAt) - now))}` : state
  }],
  WORKERS: [true, (_, status) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  MEMORY: [true, (_, status) => status && measured(figuresOf(status.workers).memoryBytes, formatBytes)],
  CPU: [true, (_, status) => status && measured(figuresOf(status.workers).cpu, formatPercent)],
  RESTARTS: [true, (_, status) => status && measured(figuresOf(status.workers).restarts, String)],
  UPTIME: [false, (_, status, { now }) => status && formatDuration(now - Date.parse(status.master.startedAt))],
  APP: [false, (_, status) => status?.app.addresses.join(', ')],
  ADMIN: [false, ({ adminUrl }) => adminUrl],
  FOLDER: [false, ({ dataDir }, _, { home }) => belowHome(dataDir, home)],
  WHY: [false, ({ reason }) => reason]
})

/** Where a terminal is narrow, these are left out, the first ones first. */
const FIRST_TO_GO = ['ADMIN', 'FOLDER', 'UPTIME', 'APP', 'RESTARTS', 'CPU', 'MEMORY']

/** `hasFolders`: with the column FOLDER; `width`: of the terminal. Returns a line each. */
export function decksTable (rows: Row[],
  { now, home = homeFolder(process.env), hasFolders = false, width = process.stdout.columns ?? Infinity }: {
    now: number,
    home?: string | null,
    hasFolders?: boolean,
    width?: number
  }): string
{
  let columns = Object.keys(COLUMNS).filter((column) =>
    (column !== 'FOLDER' || hasFolders) && (column !== 'WHY' || rows.some(({ reason }) => reason))
  )
  // A reason may have lines of its own.
  const isTooWide = () =>
    tableOf(columns.filter((column) => column !== 'WHY')).split('\n').some(({ length }) => length > width)
  for (const column of FIRST_TO_GO) if (isTooWide()) columns = columns.filter((each) => each !== column)
  return tableOf(columns)

  function tableOf (shown: string[]) {
    const cells = rows.map((row) => shown.map((column) => COLUMNS[column][1](row, row.answer?.status, { now, home })))
    return formatTable(shown, cells, { right: [...shown.keys()].filter((index) => COLUMNS[shown[index]][0]) })
  }
}

/** Returns null: it has not been measured yet. */
function measured (figure: number | null, format: (figure: number) => string) {
  return figure === null ? null : format(figure)
}

function belowHome (folder: string | null, home: string | null) {
  if (folder === null) return null
  if (folder === home) return '~'
  return home !== null && home !== path.parse(home).root && folder.startsWith(home + path.sep)
    ? `~${folder.slice(home.length)}`
    : folder
}

/** The same for scripts. */
export function deckView ({ view, answer, ...facts }: KnownApp & Pick<Row, 'answer'>) {
  const status = answer?.status ?? null
  const { memoryBytes = null, cpu = null, restarts = null } = status ? figuresOf(status.workers) : {}
  return { ...facts, isRunning: answer !== null, problem: answer?.problem ?? null, memoryBytes, cpu, restarts, status }
}
