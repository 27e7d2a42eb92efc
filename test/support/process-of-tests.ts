import path from 'node:path'
import { isMainThread } from 'node:worker_threads'
import type { Surroundings } from './left.ts'

// What test/run.ts has each of its processes load first. A lane looks around for each of its files by itself.

// What a test forks is no process of the runner; its threads load this all the same.
process.execArgv = process.execArgv.filter((word) => word !== `--import=${import.meta.url}`)
if (isMainThread) {
  const [{ leftNow, lookAround }, { isLane }] = await Promise.all([import('./left.ts'), import('./no-hang.ts')])
  if (!isLane) nameAtEnd(leftNow, lookAround())
}

function nameAtEnd (leftNow: typeof import('./left.ts').leftNow, before: Surroundings) {
  process.once('exit', () => {
    const left = leftNow(before)
    if (left.length === 0) return
    console.error(`${path.basename(process.argv[1])} has left ${left.join('; ')}`)
    process.exitCode = 1
  })
}
