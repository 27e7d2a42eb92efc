import { parseStack, placedIn } from './stack-frames.js'

const MAX_STDERR_LINE_CHARS = 2000
/** The code of a shell that may not execute a command. */
const NOT_EXECUTABLE = 126

/** @typedef {import('../../db/crashes.js').CrashRecord} CrashRecord */
/** @typedef {import('../../workers/crash-note.js').CrashNote} CrashNote */
/**
 * The worker wrote all of it, the master only an error; `places`: as a program of another language has written its stack.
 * @typedef {Pick<CrashNote, 'errorName' | 'errorMessage' | 'stack'> & Partial<Omit<CrashNote, 'kind'>> & { kind?: CrashRecord['kind'], places?: import('./traces/trace.js').Place[] | null }} ExitNote
 */

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
 * @param {boolean} [evidence.isProgram]  whether it was another program than Node
 * @param {number} evidence.at
 * @param {(frames: import('./stack-frames.js').Frame[], root: string | null) => import('./stack-frames.js').Frame[]} evidence.original
 * @returns {CrashRecord}
 */
export function toRecord (event, { note, memoryKind, root, stderr, vitals, isProgram = false, at, original }) {
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
    nodeVersion: isProgram ? null : note?.nodeVersion || process.version,
    errorName: note?.errorName ?? null,
    errorMessage: note?.errorMessage ?? event.message ?? null,
    stack,
    frames: note?.places ? note.places.map((place) => placedIn(place, root)) : original(parseStack(stack, { root }), root),
    causes: note?.causes ?? [],
    requests: note?.requests ?? [],
    memory: note?.memory ?? null,
    stderr: stderr.map((line) => line.slice(0, MAX_STDERR_LINE_CHARS)),
    vitals
  }
}

/** A function without a name, and the top level of a file of CommonJS, Python and Ruby. */
const NAMELESS = [null, 'Object.<anonymous>', '<module>', '<main>']

/** @param {CrashRecord} record @returns {string | null} the innermost function of the app */
export function culpritOf ({ frames }) {
  const frame = frames.find(({ isInApp }) => isInApp)
  if (!frame) return null
  return (NAMELESS.includes(frame.function) ? String(frame.file) : `${frame.function} (${frame.file})`).slice(0, 300)
}

/** @typedef {CrashRecord['kind']} Kind */

/** @param {Exit} event @param {ExitNote | null} note @param {Kind | null} memoryKind @returns {Kind} */
function kindOf ({ cause, code, signal, pid, actor }, note, memoryKind) {
  if (cause === 'hung') return 'hung'
  if (memoryKind) return memoryKind
  if (note) return note.kind ?? (code === NOT_EXECUTABLE || pid == null ? 'not-started' : 'boot-failure')
  // It was ended because it was not ready in time.
  if (cause === 'boot-failure' && actor) return 'boot-failure'
  return signal === null || signal === undefined ? 'exit-code' : 'signal'
}
