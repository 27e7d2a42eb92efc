import path from 'node:path'
import { formatDuration } from '../../public/format.js'
import { homeFolder } from '../system/home-folder.js'
import { formatTable } from './output.js'

/**
 * One of several decks.
 * @typedef {object} Row
 * @property {string} name
 * @property {string | null} dataDir
 * @property {string | null} adminUrl
 * @property {import('./deck-status.js').DeckStatus | null} answer  null: it does not run
 * @property {string} [state]  why it does not run
 * @property {string | null} [reason]  more about that
 *
 * @typedef {import('./deck-status.js').Status | null | undefined} AnyStatus
 * @typedef {(row: Row, status: AnyStatus, place: { now: number, home: string | null }) => string | null | undefined} CellOf
 */

/** The columns, by heading. @type {Readonly<Record<string, [isNumber: boolean, cellOf: CellOf]>>} */
const COLUMNS = Object.freeze({
  NAME: [false, ({ name }) => name],
  HEALTH: [false, ({ answer, state = 'not running' }, status) => answer ? status?.health.text ?? 'does not answer' : state],
  WORKERS: [true, (_, status) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  UPTIME: [false, (_, status, { now }) => status && formatDuration(now - Date.parse(status.master.startedAt))],
  APP: [false, (_, status) => status?.app.addresses.join(', ')],
  ADMIN: [false, ({ adminUrl }) => adminUrl],
  FOLDER: [false, ({ dataDir }, _, { home }) => belowHome(dataDir, home)],
  WHY: [false, ({ reason }) => reason]
})

/**
 * @param {Row[]} rows @param {{ now: number, home?: string | null, hasFolders?: boolean }} place `hasFolders`: with the column FOLDER
 * @returns {string} a line each
 */
export function decksTable (rows, { now, home = homeFolder(process.env), hasFolders = false }) {
  const columns = Object.keys(COLUMNS).filter((column) => (column !== 'FOLDER' || hasFolders) && (column !== 'WHY' || rows.some(({ reason }) => reason)))
  const cells = rows.map((row) => columns.map((column) => COLUMNS[column][1](row, row.answer?.status, { now, home })))
  return formatTable(columns, cells, { right: [...columns.keys()].filter((index) => COLUMNS[columns[index]][0]) })
}

/** @param {string | null} folder @param {string | null} home */
function belowHome (folder, home) {
  if (folder === null) return null
  if (folder === home) return '~'
  return home !== null && home !== path.parse(home).root && folder.startsWith(home + path.sep) ? `~${folder.slice(home.length)}` : folder
}

/** The same for scripts. @param {Row} row */
export function deckView ({ name, dataDir, adminUrl, answer }) {
  return { name, dataDir, adminUrl, isRunning: answer !== null, problem: answer?.problem ?? null, status: answer?.status ?? null }
}
