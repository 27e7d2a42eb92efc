import { stripVTControlCharacters } from 'node:util'
import { createOutOfMemory } from './oom.js'
import { fingerprintOf } from './fingerprint.js'
import { CRASH_CAUSES, isOneOf } from '../causes.js'
import { culpritOf, toRecord } from './record.js'
import { createSourceMaps } from './source-maps.js'

/**
 * @typedef {ReturnType<typeof createCrashRecorder>} CrashRecorder
 * @typedef {import('./record.js').CrashRecord} CrashRecord
 * @typedef {{ note: import('./record.js').ExitNote | null, memoryKind: CrashRecord['kind'] | null, stderr: string[], root: string | null }} Evidence
 */

const STDERR_LINES = 50
/** Lines of Node when the master examines a stuck worker. */
const OF_DEBUGGER = /^(Debugger (listening on ws:\/\/|ending on ws:\/\/|attached\.$)|For help, see: https:\/\/nodejs\.org\/|Waiting for the debugger to disconnect)/
const OF_CLUSTERDECK = 'clusterdeck: '
const OUR_LINES = 20
/** So many last lines tell why a worker did not start. */
const LAST_LINES = 6
const MAX_LAST_LINE_CHARS = 300
const OF_NODE = /^(\s+at .*node:internal\/|Node\.js v\d|\s+at .*\bnode:diagnostics_channel)/
/** There is one in a process: the kernel counts the workers of all apps together, and a death that is counted is of one app alone. @type {ReturnType<typeof createOutOfMemory> | undefined} */
let lackedMemoryHere

/** If the database fails, so many records wait. Later crashes have no record, which is told once the database is back. */
const MAX_WAITING = 100

/**
 * Writes a record of every unexpected end of a worker at once, and sorts it into its group. It never throws: a database that
 * fails must not stop supervision.
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History['crashes'], 'record'>} parts.store  if it throws, the record is kept for later
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {{ tail: (what: { slot: number | null, stream: 'stdout' | 'stderr', lines: number, worker?: number }) => string[] }} [parts.logs]
 * @param {{ lastMinute: (worker: number) => unknown[] }} [parts.vitals]
 * @param {ReturnType<typeof createOutOfMemory>} [parts.lackedMemory]
 * @param {(record: CrashRecord) => CrashRecord} [parts.hide]  takes out what nobody is to read
 * @param {() => number} [parts.now]
 * @param {(work: () => void) => void} [parts.soon]
 */
export function createCrashRecorder ({
  store,
  events,
  logs = { tail: () => [] },
  vitals = { lastMinute: () => [] },
  lackedMemory = (lackedMemoryHere ??= createOutOfMemory()),
  hide = (record) => record,
  now = Date.now,
  soon = (work) => { Promise.resolve().then(work) }
}) {
  const { original } = createSourceMaps()
  /** @type {CrashRecord[]} */
  let waiting = []
  /** Of the crashes that have no record. @type {{ count: number, from: string, to: string } | null} */
  let lost = null

  return {
    /** Writes the records that wait, once the database works again. */
    catchUp () { attemptOr(writeWaiting, undefined) },

    /**
     * Finds out whether the process lacked memory, and what it wrote last.
     * @param {{ slot: number | null, worker: number, pid: number | null, code: number | null, signal: string | null }} exit
     * @returns {{ memoryKind: 'heap-out-of-memory' | 'kernel-out-of-memory' | null, stderr: string[] }}
     */
    examine ({ slot, worker, pid, code, signal }) {
      if (signal === null && (code === 0 || code === null)) return { memoryKind: null, stderr: readTail(slot, worker) }
      const stderr = readTail(slot, worker)
      return { memoryKind: attemptOr(() => lackedMemory({ pid, code, signal, stderr }), null), stderr }
    },

    /**
     * @template {import('./record.js').Exit} T
     * @param {T} event
     * @param {Evidence} evidence
     * @returns {T} with `detail.crash` and `detail.crashGroup` if a record was made
     */
    record (event, evidence) {
      if (!isOneOf(CRASH_CAUSES, event.cause)) return event
      const told = event.cause === 'boot-failure' ? withLastLines(event, evidence) : event
      const vitalSigns = attemptOr(() => vitals.lastMinute(event.worker), [])
      const record = attemptOr(() => hide(toRecord(told, { ...evidence, vitals: vitalSigns, at: now(), original })), null)
      const stored = record && storeCrash(record)
      if (!stored) return told
      return { ...told, detail: { ...told.detail, crash: stored.crash, crashGroup: stored.group } }
    }
  }

  /** @param {CrashRecord} record */
  function storeCrash (record) {
    try {
      writeWaiting()
      return writeCrash(record)
    } catch {
      // The recorder of events gets the same error with the event itself, and reports it.
      return queueCrash(record)
    }
  }

  function queueCrash (/** @type {CrashRecord} */ record) {
    if (waiting.length < MAX_WAITING) waiting.push(record)
    else lost = { count: (lost?.count ?? 0) + 1, from: lost?.from ?? record.at, to: record.at }
    return null
  }

  function writeWaiting () {
    while (waiting.length > 0) {
      writeCrash(waiting[0])
      waiting = waiting.slice(1)
    }
    if (lost) tellLost(lost)
    lost = null
  }

  /** @param {{ count: number, from: string, to: string }} lost */
  function tellLost ({ count, from, to }) {
    const message = `${count === 1 ? '1 crash has' : `${count} crashes have`} no record: the history could not be written`
    soon(() => events.publish({ type: 'crash.records-lost', actor: 'system', message, detail: { lost: count, from, to } }))
  }

  /** @param {CrashRecord} record */
  function writeCrash (record) {
    const culprit = culpritOf(record)
    const stored = store.record(fingerprintOf(record), record, { culprit })
    const type = stored.isNew ? 'crash.group-new' : stored.hasReturned ? 'crash.group-returned' : null
    // The event of the exit itself has to come first.
    if (type) soon(() => events.publish({ type, ...newsOf(record, stored, culprit) }))
    return stored
  }

  /**
   * Adds the last lines of an app that does not start, which usually say why.
   * @template {import('./record.js').Exit} T @param {T} event @param {Pick<Evidence, 'note' | 'stderr'>} evidence @returns {T}
   */
  function withLastLines (event, { note, stderr }) {
    const { slot = null, worker } = event
    const said = lastLinesOf(stderr)
    const lastLines = said.length > 0 ? said : lastLinesOf(readTail(slot, worker, 'stdout'))
    if (lastLines.length === 0) return event
    const why = note || event.signal ? '' : `: ${lastLines.at(-1)}`
    return { ...event, message: `${event.message}${why}`, detail: { ...event.detail, lastLines } }
  }

  /** @param {number | null} slot @param {number} worker @param {'stdout' | 'stderr'} [stream] */
  function readTail (slot, worker, stream = 'stderr') {
    return attemptOr(() => logs.tail({ slot, stream, lines: STDERR_LINES + OUR_LINES, worker }).filter(isOfApp).slice(-STDERR_LINES), [])
  }
}

/** @param {string} line */
function isOfApp (line) {
  return !OF_DEBUGGER.test(line) && !line.startsWith(OF_CLUSTERDECK)
}

/** @param {CrashRecord} record @param {{ crash: number, group: number, count: number }} stored @param {string | null} culprit */
function newsOf (record, { crash, group, count }, culprit) {
  const { cause, slot, worker, pid, release, rollout, kind, errorName, errorMessage, code, signal } = record
  const what = errorName === null ? errorMessage ?? kind : `${errorName}: ${errorMessage}`
  const message = `${what}${culprit ? `, in ${culprit}` : ''}`
  const detail = { crash, crashGroup: group, kind, errorName, culprit, count }
  return { cause, slot, worker, pid, release, rollout, code, signal, actor: 'system', message, detail }
}

/** @param {string[]} lines of an app @returns {string[]} the last ones that are not empty; hostile text */
function lastLinesOf (lines) {
  return lines
    .filter((line) => !OF_NODE.test(line))
    .map((line) => stripVTControlCharacters(line).trimEnd().slice(0, MAX_LAST_LINE_CHARS))
    .filter((line) => line.trim() !== '')
    .slice(-LAST_LINES)
}

/** @template T @template U @param {() => T} work @param {U} otherwise @returns {T | U} */
function attemptOr (work, otherwise) {
  try {
    return work()
  } catch {
    // A record without this part is better than none.
    return otherwise
  }
}
