import { stripVTControlCharacters } from 'node:util'
import { formatDuration } from './duration.js'

/**
 * What the commands print for people. Scripts read `--json`.
 */

/**
 * Columns as wide as their widest cell, two spaces apart; the last one is left as it is.
 * @param {string[]} head @param {(string | number | null | undefined)[][]} rows
 * @param {{ right?: number[] }} [options] `right`: columns that hold numbers
 */
export function table (head, rows, { right = [] } = {}) {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell === null || cell === undefined || cell === '' ? '-' : clean(String(cell))))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) => line.map((cell, column) => {
    if (right.includes(column)) return cell.padStart(widths[column])
    return column === line.length - 1 ? cell : cell.padEnd(widths[column])
  }).join('  ')).join('\n')
}

/**
 * Text from the app or its errors on one line, without anything that moves a terminal's cursor.
 * @param {string} text
 */
export function clean (text) {
  // eslint-disable-next-line no-control-regex
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
}

/** @param {any} status the body of GET /status @param {number} now ms since the epoch */
export function statusText (status, now) {
  const { master, app } = status
  const age = (/** @type {string | null} */ since) => since === null ? null : formatDuration(Math.max(0, now - Date.parse(since)))
  const facts = [
    ['state', status.state],
    ['master', `pid ${master.pid}, up ${age(master.startedAt)}, ${formatBytes(master.rssBytes)}, clusterdeck ${master.version}, node ${master.nodeVersion}`],
    ['app', app.entry],
    ...app.addresses.map((/** @type {string} */ address) => ['', address]),
    ['release', status.release?.id ?? '-'],
    ['workers', `${status.readyWorkers} of ${status.desiredWorkers} ready, dispatch ${status.dispatch}`],
    ...(status.rollout ? [['rollout', rolloutText(status.rollout)]] : [])
  ]
  const workers = table(
    ['SLOT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'RESTARTS', 'MEMORY', 'CPU'],
    status.workers.map((/** @type {any} */ worker) => [
      worker.slot,
      worker.id,
      worker.pid,
      [worker.state, worker.crashLooping && '(crash-looping)', worker.drifted && '(drifted)'].filter(Boolean).join(' '),
      worker.release,
      worker.pid === null ? null : age(worker.startedAt),
      worker.restarts,
      worker.vitals && formatBytes(worker.vitals.rssBytes),
      worker.vitals && `${Math.round(worker.vitals.cpuPercent)}%`
    ]), { right: [0, 1, 2, 6, 7, 8] })
  return `${facts.map(([name, value]) => `${name.padEnd(9)}${clean(String(value))}`).join('\n')}\n\n${workers}`
}

/** @param {any} rollout */
export function rolloutText ({ id, kind, state, progress, startedAt, finishedAt }) {
  const took = startedAt && finishedAt ? ` in ${formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))}` : ''
  return `rollout ${id} (${kind}) ${state}${took}: ${progress.replaced} of ${progress.total} workers replaced`
}

/** @param {any[]} events newest first */
export function eventsText (events) {
  return table(['ID', 'TIME', 'TYPE', 'SLOT', 'WORKER', 'RELEASE', 'WHAT'], events.map((event) => [
    event.id, event.at, event.type, event.slot, event.worker, event.release, whatHappened(event)
  ]), { right: [0, 3, 4] })
}

/** @param {any} event */
function whatHappened ({ cause, code, signal, message, actor }) {
  const facts = [cause, signal, code === null ? null : `code ${code}`, actor && `by ${actor}`].filter(Boolean).join(', ')
  if (message && facts) return `${message} (${facts})`
  return message ?? facts
}

/** @param {number} bytes */
function formatBytes (bytes) {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`
}
