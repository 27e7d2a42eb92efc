import { heldWords } from '../held-words.js'
import { waitingText } from '../health.js'
import { oneLine } from '../system/one-line.js'
import { formatBytes, formatDispatch, formatDuration, formatExactDuration, formatLatency, formatLimits, formatPercent, formatRate } from '../../public/format.js'

/**
 * What the commands print for people. Scripts read `--json`.
 * @typedef {import('../api/cluster.js').Status} Status
 * @typedef {import('../api/cluster.js').Worker} Worker
 * @typedef {import('../api/rollouts.js').Rollout} Rollout
 * @typedef {import('../api/events.js').Event} Event
 * @typedef {[isNumber: boolean, cellOf: (worker: Worker, now: number) => string | number | null]} Column
 */

/** Only so many texts are shown that programs say of themselves: each could say something else, and at length. */
const MAX_SAYINGS = 5

/** @param {unknown} value */
export function jsonText (value) {
  return JSON.stringify(value, null, 2)
}

/**
 * Makes columns as wide as their widest cell, two spaces apart; the last one is left as it is.
 * @param {readonly string[]} head @param {(string | number | null | undefined)[][]} rows
 * @param {{ right?: number[] }} [options] `right`: columns that hold numbers
 */
export function formatTable (head, rows, { right = [] } = {}) {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell === null || cell === undefined || cell === '' ? '-' : oneLine(String(cell))))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines.map((line) => line.map((cell, column) => {
    if (right.includes(column)) return cell.padStart(widths[column])
    return column === line.length - 1 ? cell : cell.padEnd(widths[column])
  }).join('  ')).join('\n')
}

/** The columns of the workers, by heading. @type {Readonly<Record<string, Column>>} */
const COLUMNS = Object.freeze({
  SLOT: [true, ({ slot }) => slot],
  WORKER: [true, ({ id }) => id],
  PID: [true, ({ pid }) => pid],
  PORT: [true, ({ port }) => port],
  STATE: [false, stateText],
  RELEASE: [false, ({ release, drifted }) => drifted ? `${release} + changes` : release],
  UPTIME: [false, ({ pid, startedAt }, now) => pid === null ? null : ageOf(startedAt, now)],
  RESTARTS: [true, ({ restarts }) => restarts],
  MEMORY: [true, ({ vitals }) => vitals && formatBytes(vitals.rssBytes)],
  CPU: [true, ({ vitals }) => vitals && formatPercent(vitals.cpuPercent)],
  'REQ/S': [true, ({ vitals }) => vitals && formatRate(vitals.requestsPerSecond)],
  P99: [true, ({ vitals }) => vitals && formatLatency(vitals.latencyP99Ms)],
  CONNS: [true, ({ vitals }) => vitals && vitals.openConnections],
  LOOP: [true, ({ vitals }) => vitals && formatPercent(percentOf(vitals.eventLoopUtilization))]
})
const STATUS_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'RESTARTS', 'MEMORY', 'CPU']
const WATCHED_COLUMNS = ['SLOT', 'PORT', 'WORKER', 'PID', 'STATE', 'RELEASE', 'UPTIME', 'MEMORY', 'CPU', 'CONNS', 'REQ/S', 'P99', 'LOOP']
/** What only a Node program counts, and what is shown of others instead. */
const NODE_COLUMNS = ['REQ/S', 'P99', 'LOOP']
const OTHER_COLUMNS = ['CONNS']

/** @param {Status} status @param {number} now ms since the epoch */
export function statusText (status, now) {
  return `${factsText(status, now)}\n\n${workersText(status, now, STATUS_COLUMNS)}`
}

/** The same for `--watch`, with the columns that change from second to second. @param {Status} status @param {number} now */
export function watchedText (status, now) {
  return `${factsText(status, now)}\n\n${workersText(status, now, WATCHED_COLUMNS)}`
}

/** The same on one line. @param {Status} status */
export function statusLine ({ state, release, readyWorkers, desiredWorkers, workers, rollout }) {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  const latencies = vitals.flatMap(({ latencyP99Ms }) => latencyP99Ms ?? [])
  return oneLine([
    state,
    `release ${release?.id ?? '-'}`,
    `${readyWorkers} of ${desiredWorkers} ready`,
    ...countsOf(workers.map((worker) => worker.state).filter((each) => each !== 'ready')),
    ...(areRequestsCounted(workers) ? [`${formatRate(sumOf(vitals.map(({ requestsPerSecond }) => requestsPerSecond ?? 0)))} requests/s`] : []),
    ...(latencies.length > 0 ? [`slowest p99 ${formatLatency(Math.max(...latencies))}`] : []),
    formatBytes(sumOf(vitals.map(({ rssBytes }) => rssBytes ?? 0))),
    ...(rollout ? [rolloutText(rollout)] : [])
  ].join(', '))
}

/** @param {Pick<Worker, 'vitals'>[]} workers @returns {boolean} false: they are programs of another language, and only Node programs count them */
export function areRequestsCounted (workers) {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  return vitals.length === 0 || vitals.some(({ requestsPerSecond }) => requestsPerSecond !== null)
}

/** @param {number[]} values */
function sumOf (values) {
  return values.reduce((total, value) => total + value, 0)
}

/** @param {string[]} words @returns {string[]} `2 draining` */
function countsOf (words) {
  return [...new Set(words)].map((word) => `${words.filter((each) => each === word).length} ${word}`)
}

/** @param {Status} status @param {number} now */
function factsText (status, now) {
  const { master, app, health, notices = [] } = status
  const ready = `${status.readyWorkers} of ${status.desiredWorkers} ready`
  const versions = `clusterdeck ${master.version}, node ${master.nodeVersion}`
  /** @type {[name: string, value: string][]} */
  const facts = [
    ...notices.map(noticeFact),
    ...optionalFact('health', health && healthText(health)),
    ['state', status.state],
    ['master', `pid ${master.pid}, up ${ageOf(master.startedAt, now)}, ${formatBytes(master.rssBytes)}${master.isShared ? ' for all apps of the host' : ''}, ${versions}`],
    ['app', app.program ?? app.entry],
    ...app.addresses.flatMap((address) => optionalFact('', address)),
    ['release', status.release?.id ?? '-'],
    ['workers', status.finishedWorkers > 0 ? `${ready}, ${status.finishedWorkers} finished` : ready],
    ...textsOf(status.workers, ({ statusText }) => statusText ? [statusText] : []).map(([text, slots]) => /** @type {[string, string]} */ (['says', `${text} (${slotsText(slots)})`])),
    ...optionalFact('restart', status.nextRestartAt && `${status.nextRestartAt} (restart.cron)`),
    ...optionalFact('standby', status.standby?.wanted > 0 && standbyText(status.standby)),
    ['dispatch', formatDispatch(status)],
    ...optionalFact('sockets', app.ownSockets && `each worker has its own, so only one can serve: ${app.ownSockets}`),
    ...textsOf(status.workers, ({ socketNotes = [] }) => socketNotes).map(([text, slots]) => /** @type {[string, string]} */ (['sockets', `${text} (${slotsText(slots)})`])),
    ...optionalFact('limits', status.limits && formatLimits(status.limits)),
    ...optionalFact('rollout', status.rollout && rolloutText(status.rollout)),
    ...optionalFact('history', status.history?.problem && `cannot be written: ${status.history.problem}`)
  ]
  return facts.map(([name, value]) => `${name.padEnd(9)}${oneLine(String(value))}`).join('\n')
}

/** @param {Worker[]} workers @param {(worker: Worker) => string[]} textsIn @returns {[text: string, slots: number[]][]} each text once */
function textsOf (workers, textsIn) {
  const texts = [...new Set(workers.flatMap(textsIn))].slice(0, MAX_SAYINGS)
  return texts.map((text) => [text, workers.filter((worker) => textsIn(worker).includes(text)).map(({ slot }) => slot)])
}

/** @param {number[]} slots */
function slotsText (slots) {
  return `${slots.length === 1 ? 'slot' : 'slots'} ${slots.join(', ')}`
}

/** @param {string} name @param {string | null | false | undefined} value @returns {[name: string, value: string][]} */
function optionalFact (name, value) {
  return value ? [[name, value]] : []
}

/** @param {Worker} worker @param {number} now */
function stateText ({ state, finished, crashLooping, holds, keptUntil }, now) {
  const kept = keptUntil && `(${heldWords(holds)}, ${keptText(Date.parse(keptUntil) - now)})`
  return [state, finished && `(${finishedText(finished)})`, crashLooping && '(crash-looping)', kept].filter(Boolean).join(' ')
}

/** @param {number} leftMs */
function keptText (leftMs) {
  return leftMs > 0 ? `closed in ${formatDuration(leftMs)}` : 'closing'
}

/** @param {NonNullable<Worker['finished']>} finished */
function finishedText ({ cause, code }) {
  return [cause !== 'finished' && cause, code !== null && `code ${code}`].filter(Boolean).join(', ')
}

/** @param {Status['standby']} standby */
function standbyText ({ ready, wanted, problem, workers }) {
  const rows = workers.map(({ id, pid, state, rssBytes }) => {
    const facts = [`pid ${pid ?? '-'}`, state !== 'standby' && state, rssBytes !== null && formatBytes(rssBytes)]
    return `worker ${id} (${facts.filter(Boolean).join(', ')})`
  })
  return [`${ready} of ${wanted} ready`, ...(rows.length > 0 ? [rows.join(', ')] : []), ...(problem ? [problem] : [])].join(': ')
}

/** @param {import('../api/notices.js').Notice} notice @returns {[name: string, value: string]} */
function noticeFact ({ id, at, count, message }) {
  return ['notice', `${id}: ${message} (${at}${count > 1 ? `, ${count} times` : ''})`]
}

/** @param {Status['health']} health */
function healthText ({ text, reasons }) {
  return [text, ...reasons.map((reason) => reason.text)].join(': ')
}

/** @param {Status} status @param {number} now @param {string[]} all  the columns; PORT is left out where no slot has one */
function workersText ({ workers }, now, all) {
  const hidden = areRequestsCounted(workers) ? OTHER_COLUMNS : NODE_COLUMNS
  const columns = all.filter((column) => !hidden.includes(column) && (column !== 'PORT' || workers.some(({ port }) => port)))
  return formatTable(
    columns,
    workers.map((worker) => columns.map((column) => COLUMNS[column][1](worker, now))),
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

/** @param {Rollout} rollout */
export function rolloutText ({ id, kind, state, progress, hook, startedAt, finishedAt, waitingFor }) {
  const waiting = waitingText({ waitingFor })
  if (waiting) return oneLine(`rollout ${id} (${kind}) ${state === 'paused' ? 'paused, and ' : ''}${waiting}`)
  if (hook && isHookRunning({ state, hook })) return oneLine(`rollout ${id} (${kind}) running ${hook.name}`)
  const took = startedAt && finishedAt ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}` : ''
  return oneLine(`rollout ${id} (${kind}) ${state}${took}: ${progress.replaced} of ${progress.total} workers replaced`)
}

/** @param {Pick<Rollout, 'state' | 'hook'>} rollout @returns {boolean} */
export function isHookRunning ({ state, hook }) {
  return state === 'preparing' && hook?.state === 'running'
}

/** @param {Event[]} events newest first */
export function eventsText (events) {
  return formatTable(['ID', 'TIME', 'TYPE', 'SLOT', 'WORKER', 'RELEASE', 'WHAT'], events.map((event) => [
    event.id, event.at, event.type, event.slot, event.worker, event.release, whatHappened(event)
  ]), { right: [0, 3, 4] })
}

/** @param {{ member: string, event: Event }[]} items newest first; each time is by the clock of its host */
export function fleetEventsText (items) {
  return formatTable(['TIME', 'MEMBER', 'TYPE', 'SLOT', 'WORKER', 'RELEASE', 'WHAT'], items.map(({ member, event }) => [
    event.at, member, event.type, event.slot, event.worker, event.release, whatHappened(event)
  ]), { right: [3, 4] })
}

/** @param {Event} event */
function whatHappened ({ cause, code, signal, message, actor }) {
  const facts = [cause, signal, code === null ? null : `code ${code}`, actor && `by ${actor}`].filter(Boolean).join(', ')
  if (message && facts) return `${message} (${facts})`
  return message ?? facts
}
