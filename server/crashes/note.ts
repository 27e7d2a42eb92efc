import { readFileSync, rmSync, statSync } from 'node:fs'
import { attempt } from '../errors.ts'
import type { CrashNote } from '../../workers/crash-note.ts'

/** The app's own handler may log the error and end the process later. */
const VALID_MS = 30_000
const MAX_BYTES = 512 * 1024
const MAX_TEXT_CHARS = 16_384
const MAX_LIST = 100

type Fields = Record<string, unknown>

const MEMORY = ['rssBytes', 'heapTotalBytes', 'heapUsedBytes', 'externalBytes', 'arrayBuffersBytes']

/**
 * Takes the note that a worker has written at its end, or has sent if it could not write. The app could have written
 * anything there, so invalid fields are left out. Returns null: it did not end by an error.
 */
export function takeCrashNote (file: string, code: number | null, sent?: unknown): CrashNote | null {
  const note = fieldsOf(takeFile(file) ?? sent)
  const isValid = code !== 0 && typeof note.at === 'number' && Math.abs(Date.now() - note.at) < VALID_MS
  return isValid ? checkedNote(note) : null
}

/** Null: there is none, or a full disk has cut it short */
function takeFile (file: string): unknown {
  // ENOENT: it did not end by an error.
  return attempt(() => {
    const note = statSync(file).size > MAX_BYTES ? null : JSON.parse(readFileSync(file, 'utf8'))
    rmSync(file, { force: true })
    return note
  })
}

function checkedNote (note: Fields): CrashNote {
  const memory = fieldsOf(note.memory)
  return { at: numberOf(note.at), kind: note.kind === 'unhandled-rejection' ? 'unhandled-rejection' : 'exception',
    ...checkedError(note),
    causes: listOf(note.causes).map((link) => ({ depth: numberOf(link.depth), ...checkedError(link) })),
    requests: listOf(note.requests).map(({ method, path, ageMs }) => ({ method: textOf(method), path: textOf(path),
      ageMs: numberOf(ageMs) })
    ), uptimeMs: numberOf(note.uptimeMs), nodeVersion: textOf(note.nodeVersion),
    memory: Object.fromEntries(MEMORY.map((name) => [name, numberOf(memory[name])])) }
}

function checkedError ({ errorName, errorMessage, stack }: Fields) {
  return { errorName: textOf(errorName), errorMessage: textOf(errorMessage),
    stack: typeof stack === 'string' ? textOf(stack) : null }
}

function listOf (value: unknown): Fields[] {
  return Array.isArray(value) ? value.slice(0, MAX_LIST).map(fieldsOf) : []
}

/** @returns without fields if it is no object */
function fieldsOf (value: unknown): Fields {
  return Object(value)
}

function textOf (value: unknown) {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARS) : ''
}

function numberOf (value: unknown) {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
