import path from 'node:path'
import { leftNow, lookAround } from './left.js'
import { isLane } from './no-hang.js'
import './place.js'

// What test/run.js has each of its processes load first. A lane looks around for each of its files by itself.

// What a test forks is no process of the runner.
process.execArgv = process.execArgv.filter((word) => word !== `--import=${import.meta.url}`)
if (!isLane) {
  const before = lookAround()
  process.once('exit', () => {
    const left = leftNow(before)
    if (left.length === 0) return
    console.error(`${path.basename(process.argv[1])} has left ${left.join('; ')}`)
    process.exitCode = 1
  })
}
