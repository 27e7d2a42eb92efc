import { spawnSync } from 'node:child_process'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const PATIENCE_MS = 60_000

/** Whether this process is a lane of test/run.ts, which runs many files. */
export const isLane = process.argv[1] === fileURLToPath(new URL('lane.ts', import.meta.url))
const closers: (() => unknown)[] = []

// A file whose tests have ended ends too, or says what keeps it: the runner would only stop it minutes later, without a
// word.
if (process.env.NODE_TEST_CONTEXT !== undefined && !isLane) after(watchEnd)

/** What the files of a lane share is closed after all of them. */
export function atLaneEnd (close: () => unknown) {
  closers.push(close)
}

export async function endLane () {
  for (const close of closers) await close()
  watchEnd()
}

function watchEnd () {
  setTimeout(giveUp, PATIENCE_MS).unref()
}

function giveUp () {
  console.error(
    `the tests of ${process.argv[1]} had ended ${PATIENCE_MS} ms ago, and the process had not; it is kept by: ${
      process.getActiveResourcesInfo().join(', ')
    }`
  )
  // A process that is left holds the other end of a pipe.
  const { stdout } = spawnSync('ps', ['-eo', 'pid,ppid,stat,etimes,args'], { encoding: 'utf8' })
  console.error(
    stdout?.split('\n').filter((line) => line.includes('node')).map((line) => line.slice(0, 300)).join('\n')
  )
  process.exit(1)
}
