import { oneLine } from '../system/one-line.js'
import { formatBytes, formatDispatch, formatDuration, formatExactDuration, formatLatency, formatPercent, formatRate } from '../../public/format.js'

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

/** What a worker's row can have: by heading, whether it is a number, and what it says. @type {Readonly<Record<string, [isNumber: boolean, cell: (worker: any, now: number) => string | number | null]>>} */
const COLUMNS = Object.freeze({
  SLOT: [true, ({ slot }) => slot],
  WORKER: [true, ({ id }) => id],
  PID: [true, ({ pid }) => pid],
  PORT: [true, ({ port }) => port],
  STATE: [false, ({ state, finished, crashLooping, drifted }) => [state, finished && `(${finishedText(finished)})`, crashLooping && '(crash-looping)', drifted && '(drifted)'].filter(Boolean).join(' ')],
  RELEASE: [false, ({ release }) => release],
  UPTIME: [false, ({ pid, startedAt }, now) => pid === null ? null : ageOf(startedAt, now)],
  RESTARTS: [true, ({ restarts }) => restarts],
  MEMORY: [true, ({ vitals }) => vitals && formatBytes(vitals.rssBytes)],
  CPU: [true, ({ vitals }) => vitals && formatPercent(vitals.cpuPercent)],
  'REQ/S': [true, ({ vitals }) => vitals && formatRate(vitals.requestsPerSecond)],
  P99: [true, ({ vitals }) => vitals && formatLatency(vitals.latencyP99Ms)],
  LOOP: [true, ({ vitals }) => vitals && formatPercent(percentOf(vitals.eventLoopUtilization))]
})
const STATUS_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'RESTARTS', 'MEMORY', 'CPU']
const WATCHED_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'MEMORY', 'CPU', 'REQ/S', 'P99', 'LOOP']

/** @param {any} status the body of GET /status @param {number} now ms since the epoch */
export function statusText (status, now) {
  return `${factsText(status, now)}\n\n${workersText(status, now, STATUS_COLUMNS)}`
}

/** The same for `--watch`, with what changes from second to second. @param {any} status @param {number} now */
export function watchedText (status, now) {
  return `${factsText(status, now)}\n\n${workersText(status, now, WATCHED_COLUMNS)}`
}

/** The same on one line. @param {any} status */
export function statusLine ({ state, release, readyWorkers, desiredWorkers, workers, rollout }) {
  const vitals = workers.map((/** @type {any} */ worker) => worker.vitals ?? {})
  const known = (/** @type {string} */ name) => vitals.map((/** @type {any} */ each) => each[name]).filter(Number.isFinite)
  const sum = (/** @type {string} */ name) => known(name).reduce((/** @type {number} */ total, /** @type {number} */ value) => total + value, 0)
  const latencies = known('latencyP99Ms')
  return oneLine([
    state,
    `release ${release?.id ?? '-'}`,
    `${readyWorkers} of ${desiredWorkers} ready`,
    ...countsOf(workers.map((/** @type {any} */ worker) => worker.state).filter((/** @type {string} */ each) => each !== 'ready')),
    `${formatRate(sum('requestsPerSecond'))} requests/s`,
    ...(latencies.length > 0 ? [`slowest p99 ${formatLatency(Math.max(...latencies))}`] : []),
    formatBytes(sum('rssBytes')),
    ...(rollout ? [rolloutText(rollout)] : [])
  ].join(', '))
}

/** @param {string[]} words @returns {string[]} `2 draining` */
function countsOf (words) {
  return [...new Set(words)].map((word) => `${words.filter((each) => each === word).length} ${word}`)
}

/** @param {any} status @param {number} now */
function factsText (status, now) {
  const { master, app, health, notices = [] } = status
  const facts = [
    ...notices.map(noticeFact),
    ...(health ? [['health', healthText(health)]] : []),
    ['state', status.state],
    ['master', `pid ${master.pid}, up ${ageOf(master.startedAt, now)}, ${formatBytes(master.rssBytes)}, clusterdeck ${master.version}, node ${master.nodeVersion}`],
    ['app', app.entry],
    ...app.addresses.map((/** @type {string} */ address) => ['', address]),
    ['release', status.release?.id ?? '-'],
    ['workers', [`${status.readyWorkers} of ${status.desiredWorkers} ready`, status.finishedWorkers > 0 && `${status.finishedWorkers} finished`].filter(Boolean).join(', ')],
    ...(status.nextRestartAt ? [['restart', `${status.nextRestartAt} (restart.cron)`]] : []),
    ...(status.standby?.wanted > 0 ? [['standby', standbyText(status.standby)]] : []),
    ['dispatch', formatDispatch(status)],
    ...(status.rollout ? [['rollout', rolloutText(status.rollout)]] : []),
    ...(status.history?.problem ? [['history', `cannot be written: ${status.history.problem}`]] : [])
  ]
  return facts.map(([name, value]) => `${name.padEnd(9)}${oneLine(String(value))}`).join('\n')
}

/** @param {{ cause: string, code: number | null }} finished how a slot's program ended */
function finishedText ({ cause, code }) {
  return [cause !== 'finished' && cause, code !== null && `code ${code}`].filter(Boolean).join(', ')
}

/** @param {any} standby */
function standbyText ({ ready, wanted, problem, workers }) {
  const rows = workers.map((/** @type {any} */ { id, pid, state, rssBytes }) => `worker ${id} (${[`pid ${pid ?? '-'}`, state !== 'standby' && state, rssBytes !== null && formatBytes(rssBytes)].filter(Boolean).join(', ')})`)
  return [`${ready} of ${wanted} ready`, ...(rows.length > 0 ? [rows.join(', ')] : []), ...(problem ? [problem] : [])].join(': ')
}

/** @param {any} notice */
function noticeFact ({ id, at, count, message }) {
  return ['notice', `${id}: ${message} (${at}${count > 1 ? `, ${count} times` : ''})`]
}

/** @param {any} health */
function healthText ({ text, reasons }) {
  return [text, ...reasons.map((/** @type {any} */ reason) => reason.text)].join(': ')
}

/** @param {any} status @param {number} now @param {string[]} all  the columns, that of ports only where a slot has one */
function workersText ({ workers }, now, all) {
  const columns = all.filter((column) => column !== 'PORT' || workers.some((/** @type {any} */ { port }) => port))
  return table(
    columns,
    workers.map((/** @type {any} */ worker) => columns.map((column) => COLUMNS[column][1](worker, now))),
    { right: [...columns.keys()].filter((index) => COLUMNS[columns[index]][0]) }
  )
}

/** @param {string | null} since @param {number} now */
function ageOf (since, now) {
  return since === null ? null : formatDuration(now - Date.parse(since))
}

/** @param {number | null | undefined} share */
function percentOf (share) {
  return typeof share === 'number' ? share * 100 : null
}

/** @param {any} rollout */
export function rolloutText ({ id, kind, state, progress, hook, startedAt, finishedAt }) {
  if (isHookRunning({ state, hook })) return oneLine(`rollout ${id} (${kind}) running ${hook.name}`)
  const took = startedAt && finishedAt ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}` : ''
  return oneLine(`rollout ${id} (${kind}) ${state}${took}: ${progress.replaced} of ${progress.total} workers replaced`)
}

/** @param {any} rollout @returns {boolean} whether it waits for the end of what it runs first */
export function isHookRunning ({ state, hook }) {
  return state === 'preparing' && hook?.state === 'running'
}

/** @param {any[]} events newest first */
export function eventsText (events) {
  return table(['ID', 'TIME', 'TYPE', 'SLOT', 'WORKER', 'RELEASE', 'WHAT'], events.map((event) => [
    event.id, event.at, event.type, event.slot, event.worker, event.release, whatHappened(event)
  ]), { right: [0, 3, 4] })
}

/** @param {any[]} items the last to come first, of the whole fleet: when each happened, by the clock of its host */
export function fleetEventsText (items) {
  return table(['TIME', 'MEMBER', 'TYPE', 'SLOT', 'WORKER', 'RELEASE', 'WHAT'], items.map(({ member, event }) => [
    event.at, member, event.type, event.slot, event.worker, event.release, whatHappened(event)
  ]), { right: [3, 4] })
}

/** @param {any} event */
function whatHappened ({ cause, code, signal, message, actor }) {
  const facts = [cause, signal, code === null ? null : `code ${code}`, actor && `by ${actor}`].filter(Boolean).join(', ')
  if (message && facts) return `${message} (${facts})`
  return message ?? facts
}
