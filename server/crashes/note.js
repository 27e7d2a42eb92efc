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
  return isValid ? checkedNote(note) : null
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
function checkedNote (note) {
  return {
    at: numberOf(note.at),
    kind: note.kind === 'unhandled-rejection' ? 'unhandled-rejection' : 'exception',
    ...checkedError(note),
    causes: listOf(note.causes).map((link) => ({ depth: numberOf(link?.depth), ...checkedError(link) })),
    requests: listOf(note.requests).map((request) => ({ method: textOf(request?.method), path: textOf(request?.path), ageMs: numberOf(request?.ageMs) })),
    uptimeMs: numberOf(note.uptimeMs),
    nodeVersion: textOf(note.nodeVersion),
    memory: Object.fromEntries(['rssBytes', 'heapTotalBytes', 'heapUsedBytes', 'externalBytes', 'arrayBuffersBytes'].map((name) => [name, numberOf(note.memory?.[name])]))
  }
}

/** @param {any} error */
function checkedError (error) {
  return { errorName: textOf(error?.errorName), errorMessage: textOf(error?.errorMessage), stack: typeof error?.stack === 'string' ? textOf(error.stack) : null }
}

/** @param {unknown} value @returns {any[]} */
function listOf (value) {
  return Array.isArray(value) ? value.slice(0, MAX_LIST) : []
}

/** @param {unknown} value */
function textOf (value) {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARS) : ''
}

/** @param {unknown} value */
function numberOf (value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
