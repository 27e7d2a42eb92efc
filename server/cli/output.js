import { oneLine } from '../system/one-line.js'
import { formatBytes, formatDuration, formatExactDuration, formatPercent } from '../../public/format.js'

/**
 * What the commands print for people. Scripts read `--json`.
 */

/**
 * Columns as wide as their widest cell, two spaces apart; the last one is left as it is.
 * @param {string[]} head @param {(string | number | null | undefined)[][]} rows
 * @param {{ right?: number[] }} [options] `right`: columns that hold numbers
 */
export function table (head, rows, { right = [] } = {}) {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell === null || cell === undefined || cell === '' ? '-' : oneLine(String(cell))))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) => line.map((cell, column) => {
    if (right.includes(column)) return cell.padStart(widths[column])
    return column === line.length - 1 ? cell : cell.padEnd(widths[column])
  }).join('  ')).join('\n')
}

/** @param {any} status the body of GET /status @param {number} now ms since the epoch */
export function statusText (status, now) {
  const { master, app } = status
  const age = (/** @type {string | null} */ since) => since === null ? null : formatDuration(now - Date.parse(since))
  const facts = [
    ['state', status.state],
    ['master', `pid ${master.pid}, up ${age(master.startedAt)}, ${formatBytes(master.rssBytes)}, clusterdeck ${master.version}, node ${master.nodeVersion}`],
    ['app', app.entry],
    ...app.addresses.map((/** @type {string} */ address) => ['', address]),
    ['release', status.release?.id ?? '-'],
    ['workers', `${status.readyWorkers} of ${status.desiredWorkers} ready`],
    ['dispatch', status.dispatch],
    ...(status.rollout ? [['rollout', rolloutText(status.rollout)]] : []),
    ...(status.history?.problem ? [['history', `cannot be written: ${status.history.problem}`]] : [])
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
      worker.vitals && formatPercent(worker.vitals.cpuPercent)
    ]), { right: [0, 1, 2, 6, 7, 8] })
  return `${facts.map(([name, value]) => `${name.padEnd(9)}${oneLine(String(value))}`).join('\n')}\n\n${workers}`
}

/** @param {any} rollout */
export function rolloutText ({ id, kind, state, progress, startedAt, finishedAt }) {
  const took = startedAt && finishedAt ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}` : ''
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
