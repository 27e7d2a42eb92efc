import { readFileSync } from 'node:fs'
import path from 'node:path'
import { FIXTURES } from './deck.js'

const FIXTURE = path.join(FIXTURES, 'notes-its-loop-delay.js')

/** Has keeper and masters note how late the turns of their event loops are. @param {string} folder for the notes @returns {import('./deck.js').Launch} */
export function noteLoopDelays (folder) {
  return { execArgv: ['--import', FIXTURE], env: { LOOP_DELAY_FOLDER: folder } }
}

/**
 * `own`: a machine that is busy with others keeps a process from running, which is not its fault.
 * @param {string} file that fixtures/notes-its-loop-delay.js has written @param {{ startedAt: number, endedAt: number }} window
 * @returns {{ all: number[], own: number[], withoutCpu: number }} ms, ascending; `withoutCpu`: the share of the time in which it could have run, but had none
 */
export function loopDelays (file, { startedAt, endedAt }) {
  /** @type {{ at: number, turns: [number, number][] }[]} */
  const lines = readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  const turns = lines.filter(({ at }) => at >= startedAt && at <= endedAt).flatMap(({ turns }) => turns)
  const sorted = (/** @type {number[]} */ delays) => delays.map((ms) => Math.max(0, ms)).sort((a, b) => a - b)
  return { withoutCpu: turns.reduce((sum, [, ms]) => sum + ms, 0) / (endedAt - startedAt), all: sorted(turns.map(([late]) => late)), own: sorted(turns.map(([late, withoutCpu]) => late - withoutCpu)) }
}
