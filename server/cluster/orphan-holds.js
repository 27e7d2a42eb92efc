import { readFileSync, statSync } from 'node:fs'
import { holdsFileOf } from '../../workers/protocol.js'
import { toHolds } from './told-counts.js'

const READ_EVERY_MS = 2000

/**
 * Reads what a draining worker without a channel still has. It writes that again and again as a sign of life.
 * @param {{ pid: number, orderFile: string }} identity
 * @param {(report: { type: 'holds' } & import('../../workers/protocol.js').Holds) => void} onHolds
 */
export function createOrphanHolds ({ pid, orderFile }, onHolds) {
  const file = holdsFileOf(orderFile)
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  let readAtMs = 0

  return {
    begin () { timer ??= setInterval(readFile, READ_EVERY_MS) },

    stop () { clearInterval(timer) }
  }

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
