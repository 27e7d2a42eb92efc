import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { attempt, DeckError, errorReason } from '../errors.ts'

/** Names the file into which keeper and master write where the time of the start goes. */
export const TRACE_VARIABLE = 'CLUSTERDECK_TRACE_START'

let since = 0

/**
 * Begins the file of a trace, in the format of Chrome: an array of events without its last bracket, as several
 * processes add to it. Perfetto (ui.perfetto.dev) and chrome://tracing show it.
 * @returns absolute
 * @throws {DeckError} invalid-config
 */
export function beginTrace (file: string, cwd: string): string {
  const place = path.resolve(cwd, file)
  try {
    writeFileSync(place, '[\n')
  } catch (error) {
    throw new DeckError('invalid-config',
      `--trace-start: expected a file that can be written, received ${place} (${errorReason(error)})`)
  }
  return place
}

/** Says what this process is. */
export function traceProcess (name: string) {
  append({ name: 'process_name', ph: 'M', args: { name } })
}

/** Ends a step of the start of this process: what it has done since the step before, or since it was started. */
export function traceStep (name: string) {
  const now = performance.now()
  append({ name, ph: 'X', ts: Math.round((performance.timeOrigin + since) * 1000),
    dur: Math.round((now - since) * 1000) })
  since = now
}

function append (event: object) {
  const file = process.env[TRACE_VARIABLE]
  if (!file) return
  // ENOSPC: a start does not fail for its trace.
  attempt(() => appendFileSync(file, `${JSON.stringify({ ...event, pid: process.pid, tid: 1 })},\n`))
}
