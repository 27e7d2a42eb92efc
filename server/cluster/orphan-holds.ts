import { readFileSync, statSync } from 'node:fs'
import { holdsFileOf, type Holds } from '../../workers/protocol.ts'
import { toHolds } from './told-counts.ts'

const READ_EVERY_MS = 2000

/** Reads what a draining worker without a channel still has. It writes that again and again as a sign of life. */
export function createOrphanHolds ({ pid, orderFile }: { pid: number, orderFile: string },
  onHolds: (report: { type: 'holds' } & Holds) => void)
{
  const file = holdsFileOf(orderFile)
  let timer: NodeJS.Timeout | undefined
  let readAtMs = 0

  return { begin () {
    timer ??= setInterval(readFile, READ_EVERY_MS)
  }, stop () {
    clearInterval(timer)
  } }

  function readFile () {
    try {
      const { mtimeMs } = statSync(file)
      if (mtimeMs === readAtMs) return
      readAtMs = mtimeMs
      const report = JSON.parse(readFileSync(file, 'utf8'))
      if (report.pid === pid) onHolds({ type: 'holds', ...toHolds(report) })
    } catch {
      // ENOENT: it has not written yet. It may be half written, too.
    }
  }
}
