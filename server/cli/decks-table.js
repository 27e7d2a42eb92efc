import os from 'node:os'
import path from 'node:path'
import { formatDuration } from '../../public/format.js'
import { table } from './output.js'

/** @typedef {{ name: string, dataDir: string, adminUrl: string | null, look: import('./look.js').Look | null, reason?: string }} Row `look`: null for one that does not run; `reason`: then why */

/** By heading, whether it is a number, and what it says. @type {Readonly<Record<string, [isNumber: boolean, cell: (row: Row, status: any, now: number) => string | number | null]>>} */
const COLUMNS = Object.freeze({
  NAME: [false, ({ name }) => name],
  HEALTH: [false, (row, status) => status ? status.health?.text ?? status.state : row.look ? 'does not answer' : row.reason ?? 'not running'],
  WORKERS: [true, (_, status) => status && `${Number(status.readyWorkers)}/${Number(status.desiredWorkers)}`],
  UPTIME: [false, (_, status, now) => status && formatDuration(now - Date.parse(status.master.startedAt))],
  APP: [false, (_, status) => status && status.app.addresses.join(', ')],
  ADMIN: [false, ({ adminUrl }) => adminUrl],
  FOLDER: [false, ({ dataDir }) => dataDir]
})

/**
 * @param {Row[]} rows @param {{ now: number, home?: string }} place
 * @returns {string} a line each
 */
export function decksTable (rows, { now, home = os.homedir() }) {
  const columns = Object.keys(COLUMNS)
  return table(columns, rows.map((row) => columns.map((column) => COLUMNS[column][1]({ ...row, dataDir: belowHome(row.dataDir, home) }, row.look?.status ?? null, now))), { right: [columns.indexOf('WORKERS')] })
}

/** @param {string} folder @param {string} home */
function belowHome (folder, home) {
  if (folder === home) return '~'
  return home !== path.parse(home).root && folder.startsWith(home + path.sep) ? `~${folder.slice(home.length)}` : folder
}

/**
 * The same for scripts.
 * @param {Row} row
 */
export function deckView ({ name, dataDir, adminUrl, look, reason }) {
  const status = look?.status ?? null
  return { name, dataDir, adminUrl, isRunning: look !== null, problem: look ? look.problem : reason ?? null, status }
}
