import { readFileSync, rmSync, statSync } from 'node:fs'

/** An app's own handler may log the error and end the process a little later. */
const VALID_MS = 30_000
const MAX_BYTES = 512 * 1024
const MAX_TEXT_CHARS = 16_384
const MAX_LIST = 100

/** @typedef {import('../../workers/crash-note.js').CrashNote} CrashNote */

/**
 * Takes what a worker has left of its end, or has sent where it could not. The app could have written anything there:
 * whatever is not as it should be is left out.
 * @param {string} file @param {number | null} code @param {unknown} [sent]
 * @returns {CrashNote | null} null: it did not end by an error
 */
export function takeCrashNote (file, code, sent) {
  const note = takeFile(file) ?? sent
  const { at } = Object(note)
  const isValid = code !== 0 && typeof at === 'number' && Math.abs(Date.now() - at) < VALID_MS
  return isValid ? checked(note) : null
}

/** @param {string} file @returns {any} null: there is none. One cut short by a full disk is none either */
function takeFile (file) {
  try {
    const note = statSync(file).size > MAX_BYTES ? null : JSON.parse(readFileSync(file, 'utf8'))
    rmSync(file, { force: true })
    return note
  } catch {
    // ENOENT: it did not end by an error.
    return null
  }
}

/** @param {any} note @returns {CrashNote} */
function checked (note) {
  return {
    at: number(note.at),
    kind: note.kind === 'unhandled-rejection' ? 'unhandled-rejection' : 'exception',
    ...checkedError(note),
    causes: list(note.causes).map((link) => ({ depth: number(link?.depth), ...checkedError(link) })),
    requests: list(note.requests).map((request) => ({ method: text(request?.method), path: text(request?.path), ageMs: number(request?.ageMs) })),
    uptimeMs: number(note.uptimeMs),
    nodeVersion: text(note.nodeVersion),
    memory: Object.fromEntries(['rssBytes', 'heapTotalBytes', 'heapUsedBytes', 'externalBytes', 'arrayBuffersBytes'].map((name) => [name, number(note.memory?.[name])]))
  }
}

/** @param {any} error */
function checkedError (error) {
  return { errorName: text(error?.errorName), errorMessage: text(error?.errorMessage), stack: typeof error?.stack === 'string' ? text(error.stack) : null }
}

/** @param {unknown} value @returns {any[]} */
function list (value) {
  return Array.isArray(value) ? value.slice(0, MAX_LIST) : []
}

/** @param {unknown} value */
function text (value) {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARS) : ''
}

/** @param {unknown} value */
function number (value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
