import { readFileSync } from 'node:fs'
import path from 'node:path'
import { FIXTURES, type Launch } from './deck.ts'

const FIXTURE = path.join(FIXTURES, 'notes-its-loop-delay.js')

/** Has keeper and masters note how late the turns of their event loops are. `folder`: for the notes. */
export function noteLoopDelays (folder: string): Launch {
  return { execArgv: ['--import', FIXTURE], env: { LOOP_DELAY_FOLDER: folder } }
}

/**
 * `own`: a machine that is busy with others keeps a process from running, which is not its fault.
 * @param file that fixtures/notes-its-loop-delay.js has written
 * @returns ms, ascending; `withoutCpu`: the share of the time in which it could have run, but had none
 */
export function loopDelays (file: string,
  { startedAt, endedAt }: { startedAt: number, endedAt: number }): { all: number[], own: number[], withoutCpu: number }
{
  const lines: { at: number, turns: [number, number][] }[] = readFileSync(file, 'utf8').trim().split('\n').map((line) =>
    JSON.parse(line)
  )
  const turns = lines.filter(({ at }) => at >= startedAt && at <= endedAt).flatMap(({ turns }) => turns)
  const sorted = (delays: number[]) => delays.map((ms) => Math.max(0, ms)).sort((a, b) => a - b)
  return { withoutCpu: turns.reduce((sum, [, ms]) => sum + ms, 0) / (endedAt - startedAt),
    all: sorted(turns.map(([late]) => late)), own: sorted(turns.map(([late, withoutCpu]) => late - withoutCpu)) }
}
