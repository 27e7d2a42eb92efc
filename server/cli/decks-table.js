import path from 'node:path'
import { formatDuration } from '../../public/format.js'
import { homeFolder } from '../system/home-folder.js'
import { table } from './output.js'

/**
 * A deck, as somebody sees it who looks at several.
 * @typedef {object} Row
 * @property {string} name
 * @property {string} dataDir
 * @property {string | null} adminUrl
 * @property {import('./look.js').Look | null} look  null for one that does not run
 * @property {string} [state]  of one that does not run: why
 * @property {string | null} [reason]  more of that
 */

/** By heading: whether it is a number, and what it says. @type {Readonly<Record<string, [isNumber: boolean, cell: (row: Row, status: any, place: { now: number, home: string | null }) => string | number | null | undefined]>>} */
const COLUMNS = Object.freeze({
  NAME: [false, ({ name }) => name],
  HEALTH: [false, ({ look, state = 'not running' }, status) => look ? status?.health.text ?? 'does not answer' : state],
  WORKERS: [true, (_, status) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  UPTIME: [false, (_, status, { now }) => status && formatDuration(now - Date.parse(status.master.startedAt))],
  APP: [false, (_, status) => status?.app.addresses.join(', ')],
  ADMIN: [false, ({ adminUrl }) => adminUrl],
  FOLDER: [false, ({ dataDir }, _, { home }) => belowHome(dataDir, home)],
  WHY: [false, ({ reason }) => reason]
})

/**
 * @param {Row[]} rows @param {{ now: number, home?: string | null, isElsewhere?: boolean }} place `isElsewhere`: their folders say more than nothing
 * @returns {string} a line each
 */
export function decksTable (rows, { now, home = homeFolder(process.env), isElsewhere = false }) {
  const columns = Object.keys(COLUMNS).filter((column) => (column !== 'FOLDER' || isElsewhere) && (column !== 'WHY' || rows.some(({ reason }) => reason)))
  return table(columns, rows.map((row) => columns.map((column) => COLUMNS[column][1](row, row.look?.status, { now, home }))), { right: [...columns.keys()].filter((index) => COLUMNS[columns[index]][0]) })
}

/** @param {string} folder @param {string | null} home */
function belowHome (folder, home) {
  if (folder === home) return '~'
  return home !== null && home !== path.parse(home).root && folder.startsWith(home + path.sep) ? `~${folder.slice(home.length)}` : folder
}

/** The same for scripts. @param {Row} row */
export function deckView ({ name, dataDir, adminUrl, look }) {
  return { name, dataDir, adminUrl, isRunning: look !== null, problem: look?.problem ?? null, status: look?.status ?? null }
}
