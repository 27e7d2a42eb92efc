import { parseStack } from './stack-frames.js'

const MAX_STDERR_LINE_CHARS = 2000

/**
 * One crash as plain data.
 * @typedef {object} CrashRecord
 * @property {string} at
 * @property {string} cause  as in the history
 * @property {'exception' | 'unhandled-rejection' | 'exit-code' | 'signal' | 'heap-out-of-memory' | 'kernel-out-of-memory' | 'hung' | 'boot-failure'} kind
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number | null} slot
 * @property {number | null} worker
 * @property {number | null} pid
 * @property {string | null} release
 * @property {number | null} rollout
 * @property {number | null} uptimeMs  since its fork
 * @property {string} nodeVersion
 * @property {string | null} errorName
 * @property {string | null} errorMessage
 * @property {string | null} stack  as the process had it
 * @property {import('./stack-frames.js').Frame[]} frames  of that stack, innermost first, with source maps applied
 * @property {import('../../workers/crash-note.js').ErrorLink[]} causes
 * @property {{ method: string, path: string, ageMs: number }[]} requests  in flight at its end
 * @property {Record<string, number> | null} memory  in bytes, at its end
 * @property {string[]} stderr  its last lines
 * @property {unknown[]} vitals  of its last minute
 */

/** @typedef {import('../../workers/crash-note.js').CrashNote} CrashNote */
/** @typedef {Pick<CrashNote, 'errorName' | 'errorMessage' | 'stack'> & Partial<CrashNote>} ExitNote  the worker wrote all of it, the master only an error */

/**
 * A `worker.exited` that is about to be published.
 * @typedef {Record<string, any>} Exit
 */

/**
 * @param {Exit} event
 * @param {object} evidence
 * @param {ExitNote | null} evidence.note
 * @param {CrashRecord['kind'] | null} evidence.memoryKind
 * @param {string | null} evidence.root the release's folder
 * @param {string[]} evidence.stderr
 * @param {unknown[]} evidence.vitals
 * @param {number} evidence.at
 * @param {(frames: import('./stack-frames.js').Frame[], root: string | null) => import('./stack-frames.js').Frame[]} evidence.original
 * @returns {CrashRecord}
 */
export function toRecord (event, { note, memoryKind, root, stderr, vitals, at, original }) {
  const stack = note?.stack ?? (event.cause === 'hung' ? event.detail?.stack ?? null : null)
  return {
    at: new Date(at).toISOString(),
    cause: event.cause,
    kind: kindOf(event, note, memoryKind),
    code: event.code ?? null,
    signal: event.signal ?? null,
    slot: event.slot ?? null,
    worker: event.worker ?? null,
    pid: event.pid ?? null,
    release: event.release ?? null,
    rollout: event.rollout ?? null,
    uptimeMs: event.uptimeMs ?? null,
    nodeVersion: note?.nodeVersion || process.version,
    errorName: note?.errorName ?? null,
    errorMessage: note?.errorMessage ?? event.message ?? null,
    stack,
    frames: original(parseStack(stack, { root }), root),
    causes: note?.causes ?? [],
    requests: note?.requests ?? [],
    memory: note?.memory ?? null,
    stderr: stderr.map((line) => line.slice(0, MAX_STDERR_LINE_CHARS)),
    vitals
  }
}

/** A function without a name, and the top level of a CommonJS file. */
const NAMELESS = [null, 'Object.<anonymous>']

/** @param {CrashRecord} record @returns {string | null} the innermost function of the app */
export function culpritOf ({ frames }) {
  const frame = frames.find(({ isInApp }) => isInApp)
  if (!frame) return null
  return (NAMELESS.includes(frame.function) ? String(frame.file) : `${frame.function} (${frame.file})`).slice(0, 300)
}

/** @typedef {CrashRecord['kind']} Kind */

/** @param {Exit} event @param {ExitNote | null} note @param {Kind | null} memoryKind @returns {Kind} */
function kindOf ({ cause, signal, actor }, note, memoryKind) {
  if (cause === 'hung') return 'hung'
  if (memoryKind) return memoryKind
  if (note) return note.kind ?? 'boot-failure'
  // It was ended because it was not ready in time.
  if (cause === 'boot-failure' && actor) return 'boot-failure'
  return signal === null || signal === undefined ? 'exit-code' : 'signal'
}
