import { writeFileSync } from 'node:fs'
import { describeCrash } from './crash-note.js'

/**
 * Leaves the error that ends this process in a file for the master. Written synchronously: what a dying process sends
 * over IPC can be lost with it. The 'uncaughtExceptionMonitor' changes nothing of Node's own handling; an app with a
 * handler of its own may live on, so the record says when it was written.
 * @param {string} file
 * @param {object} parts
 * @param {import('./requests.js').Requests} parts.requests
 * @param {ReturnType<typeof import('./fatal-grace.js').createFatalGrace>} parts.fatalGrace
 */
export function recordCrashes (file, { requests, fatalGrace }) {
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    // What follows from the first error while the process is on its way out is not what ended it.
    if (fatalGrace.isDying()) return fatalGrace.endNow()
    const note = takeNote()
    fatalGrace.begin(error, origin, note)

    function takeNote () {
      try {
        const content = describeCrash(error, origin, requests.inFlight())
        writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
        return content
      } catch {
        // ENOSPC, EACCES: the error itself still reaches stderr, and the exit code the master.
        return null
      }
    }
  })
}
