import path from 'node:path'
import { onRefusal } from '../errors.ts'
import { formatBytes, formatDuration, formatPercent } from '../../public/format.ts'
import { figuresOf } from '../words/figures.ts'
import { homeFolder } from '../system/home-folder.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import { createApiClient } from './api-client.ts'
import { findMasterAt, findRunning } from './find-master.ts'
import { isOpen } from './host.ts'
import { columnsTable, type Columns } from './output.ts'
import { ANSWER_WITHIN_MS } from './reachable.ts'
import type { KnownApp } from './known-apps.ts'
import type { Place } from './program.ts'
import type { Status } from '../api/cluster.ts'

/** One of several apps. `answer`: of its master; null: it does not run. */
export type Row =
  & Pick<KnownApp, 'name' | 'dataDir' | 'adminUrl'>
  & Partial<Pick<KnownApp, 'reason' | 'nextTryAt'>>
  & { answer: DeckStatus | null, state?: string }
type Shown = Row & { status: Status | null | undefined }

const COLUMNS: Columns<Shown, { now: number, home: string | null }> = { NAME: 'name',
  HEALTH: ({ answer, status, state = 'not running', nextTryAt }, { now }) => {
    if (answer) return status?.health.text ?? 'does not answer'
    return nextTryAt ? `${state}, next try in ${formatDuration(Math.max(1000, Date.parse(nextTryAt) - now))}` : state
  }, WORKERS: [true, ({ status }) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  MEMORY: [true, ({ status }) => status && measured(figuresOf(status.workers).memoryBytes, formatBytes)],
  CPU: [true, ({ status }) => status && measured(figuresOf(status.workers).cpu, formatPercent)],
  RESTARTS: [true, ({ status }) => status && measured(figuresOf(status.workers).restarts, String)],
  UPTIME: ({ status }, { now }) => status && formatDuration(now - Date.parse(status.master.startedAt)),
  APP: ({ status }) => status?.app.addresses.join(', '), ADMIN: 'adminUrl',
  FOLDER: ({ dataDir }, { home }) => belowHome(dataDir, home), WHY: 'reason' }

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
  const shown = Object.keys(COLUMNS).filter((column) =>
    (column !== 'FOLDER' || hasFolders) && (column !== 'WHY' || rows.some(({ reason }) => reason))
  )
  // A reason may have lines of its own.
  return columnsTable(COLUMNS, rows.map((row) => ({ ...row, status: row.answer?.status })), { now, home }, { shown,
    firstToGo: FIRST_TO_GO, last: 'WHY', width })
}

/** Returns null: it has not been measured yet. */
export function measured (figure: number | null, format: (figure: number) => string) {
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

/** `problem`: why there is no status */
export type DeckStatus = { status: Status | null, problem: string | null }

/** `dataDir`: absolute @returns within a few seconds */
export async function readDeckStatus (dataDir: string, place: Place): Promise<DeckStatus> {
  const look = async () =>
    createApiClient(await findMasterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS }).get<Status>('/status')
  return await look().then((status) => ({ status, problem: null }),
    onRefusal(({ message }) => ({ status: null, problem: message })))
}

/** Asks each app that runs how it is. Returns the same with `answer`: null: it does not run. */
export async function askApps<App extends KnownApp> (apps: readonly App[],
  place: Place): Promise<(App & { answer: DeckStatus | null })[]>
{
  return await Promise.all(
    apps.map(async (app) => ({ ...app,
      answer: isOpen(app) && app.dataDir !== null ? await readDeckStatus(app.dataDir, place) : null })
    )
  )
}

/** `dataDir`: absolute @returns also true while its master is being replaced */
export async function isRunning (dataDir: string, place: Place): Promise<boolean> {
  if (runningDeckAt(dataDir, place.env)) return true
  // The deck may have another runtime folder, or its pid may be another process now.
  return findRunning(dataDir, place.env) !== null && (await readDeckStatus(dataDir, place)).status !== null
}
