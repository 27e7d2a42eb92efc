import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { after, describe, mock } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import './folder.ts'
import { leftSince, lookAround } from './left.ts'
import { endLane } from './no-hang.ts'
import { enterPlace } from './place.ts'

// One of the processes of test/run.ts: takes the next file that no other one has taken, until there is none.

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FILE_TIMEOUT_MS = 480_000
const { files, claims }: { files: string[], claims: string } = JSON.parse(String(process.env.TEST_LANE))
// It is long, and nobody whom the tests start needs it.
delete process.env.TEST_LANE

for (const [index, file] of files.entries()) if (claim(index)) await runFile(file)
await endLane()

function claim (index: number) {
  try {
    mkdirSync(path.join(claims, String(index)))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/** @returns once its tests have ended */
function runFile (file: string): Promise<void> {
  return new Promise((resolve) => {
    enterPlace()
    describe(path.relative(ROOT, file), { timeout: FILE_TIMEOUT_MS }, async () => {
      const before = lookAround()
      try {
        await import(pathToFileURL(file).href)
      } finally {
        // The last hook runs after those of the file.
        after(async () => {
          mock.reset()
          try {
            const left = await leftSince(before)
            if (left.length > 0) throw new Error(`${path.relative(ROOT, file)} has left ${left.join('; ')}`)
          } finally {
            resolve()
          }
        })
      }
    })
  })
}
