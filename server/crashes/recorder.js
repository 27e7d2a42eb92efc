import { stripVTControlCharacters } from 'node:util'
import { createOutOfMemory } from './oom.js'
import { fingerprintOf } from './fingerprint.js'
import { CRASH_CAUSES, isOneOf } from '../causes.js'
import { culpritOf, toRecord } from './record.js'
import { createSourceMaps } from './source-maps.js'

/** @typedef {ReturnType<typeof createCrashRecorder>} CrashRecorder */

const STDERR_LINES = 50
/** What Node writes when the master looks into a worker that is stuck, and clusterdeck by its name: no words of the app. */
const OURS = /^(Debugger (listening on ws:\/\/|ending on ws:\/\/|attached\.$)|For help, see: https:\/\/nodejs\.org\/|Waiting for the debugger to disconnect|clusterdeck: )/
const OUR_LINES = 20
/** Of a worker that did not start: what its terminal would have shown, without Node's own part of a stack. */
const LAST_LINES = 6
const MAX_LAST_LINE_CHARS = 300
const OF_NODE = /^(\s+at .*node:internal\/|Node\.js v\d|\s+at .*\bnode:diagnostics_channel)/
/** While the database is away; what comes then is in the history without its crash record. */
const MAX_WAITING = 100

/**
 * Writes a record of every worker that ended without being asked to, in the turn in which that becomes known, and sorts
 * it into its group. It never throws: a database that fails must not stop supervision.
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History['crashes'], 'record'>} parts.store  it may throw for a while; what it does not take is kept for later
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {{ tail: (what: { slot: number | null, stream: 'stdout' | 'stderr', lines: number, worker?: number }) => string[] }} [parts.logs]
 * @param {{ lastMinute: (worker: number) => unknown[] }} [parts.vitals]
 * @param {ReturnType<typeof createOutOfMemory>} [parts.lackedMemory]
 * @param {() => number} [parts.now]
 * @param {(work: () => void) => void} [parts.soon]
 */
export function createCrashRecorder ({
  store, events, logs = { tail: () => [] }, vitals = { lastMinute: () => [] }, lackedMemory = createOutOfMemory(), now = Date.now, soon = queueMicrotask
}) {
  const { original } = createSourceMaps()
  /** @type {import('./record.js').CrashRecord[]} */
  let waiting = []

  return {
    /**
     * What the process itself cannot tell of its end.
     * @param {{ slot: number | null, worker: number, pid: number | null, code: number | null, signal: string | null }} exit
     * @returns {{ memoryKind: 'heap-out-of-memory' | 'kernel-out-of-memory' | null, stderr: string[] }}
     */
    examine ({ slot, worker, pid, code, signal }) {
      if (signal === null && (code === 0 || code === null)) return { memoryKind: null, stderr: readTail(slot, worker) }
      const stderr = readTail(slot, worker)
      return { memoryKind: attemptOr(() => lackedMemory({ pid, code, signal, stderr }), null), stderr }
    },

    /**
     * @template {Record<string, any>} T
     * @param {T} event `worker.exited`, about to be published
     * @param {{ note: import('./record.js').ExitNote | null, memoryKind: 'heap-out-of-memory' | 'kernel-out-of-memory' | null, stderr: string[], root: string | null }} evidence
     * @returns {T} with `detail.crash` and `detail.crashGroup`, where a record was made
     */
    record (event, evidence) {
      if (!isOneOf(CRASH_CAUSES, event.cause)) return event
      const told = event.cause === 'boot-failure' ? withLastLines(event, evidence) : event
      const vitalSigns = attemptOr(() => vitals.lastMinute(event.worker), [])
      const record = attemptOr(() => toRecord(told, { ...evidence, vitals: vitalSigns, at: now(), original }), null)
      const stored = record && storeCrash(record)
      if (!stored) return told
      return { ...told, detail: { ...told.detail, crash: stored.crash, crashGroup: stored.group } }
    }
  }

  /** @param {import('./record.js').CrashRecord} record */
  function storeCrash (record) {
    try {
      writeWaiting()
      return writeCrash(record)
    } catch {
      // The recorder of events meets the same fault with the event itself, and says so.
      return queueCrash(record)
    }
  }

  function queueCrash (/** @type {import('./record.js').CrashRecord} */ record) {
    if (waiting.length < MAX_WAITING) waiting.push(record)
    return null
  }

  function writeWaiting () {
    while (waiting.length > 0) {
      writeCrash(waiting[0])
      waiting = waiting.slice(1)
    }
  }

  /** @param {import('./record.js').CrashRecord} record */
  function writeCrash (record) {
    const culprit = culpritOf(record)
    const stored = store.record(fingerprintOf(record), record, { culprit })
    const type = stored.isNew ? 'crash.group-new' : stored.hasReturned ? 'crash.group-returned' : null
    // After the event of the exit itself, which is what it follows from.
    if (type) soon(() => events.publish({ type, ...newsOf(record, stored, culprit) }))
    return stored
  }

  /**
   * An app that does not start has usually said why, and many say it before they exit by themselves.
   * @template {Record<string, any>} T @param {T} event @param {{ note: unknown, stderr: string[] }} evidence @returns {T}
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
    return attemptOr(() => logs.tail({ slot, stream, lines: STDERR_LINES + OUR_LINES, worker }).filter((line) => !OURS.test(line)).slice(-STDERR_LINES), [])
  }
}

/** @param {import('./record.js').CrashRecord} record @param {{ crash: number, group: number, count: number }} stored @param {string | null} culprit */
function newsOf ({ cause, slot, worker, pid, release, rollout, kind, errorName, errorMessage, code, signal }, { crash, group, count }, culprit) {
  const what = errorName === null ? errorMessage ?? kind : `${errorName}: ${errorMessage}`
  return {
    cause, slot, worker, pid, release, rollout, code, signal, actor: 'system', message: `${what}${culprit ? `, in ${culprit}` : ''}`, detail: { crash, crashGroup: group, kind, errorName, culprit, count }
  }
}

/** @param {string[]} lines of an app @returns {string[]} the last ones that say something; hostile text, as whatever an app says */
function lastLinesOf (lines) {
  return lines.filter((line) => !OF_NODE.test(line)).map((line) => stripVTControlCharacters(line).trimEnd().slice(0, MAX_LAST_LINE_CHARS)).filter((line) => line.trim() !== '').slice(-LAST_LINES)
}

/** @template T @template U @param {() => T} work @param {U} otherwise @returns {T | U} */
function attemptOr (work, otherwise) {
  try {
    return work()
  } catch {
    // What other parts cannot tell is left out of the record.
    return otherwise
  }
}
