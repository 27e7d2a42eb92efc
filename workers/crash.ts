import { writeFileSync } from 'node:fs'
import { describeCrash, type CrashNote } from './crash-note.ts'
import type { Channel } from './channel.ts'
import type { Requests } from './requests.ts'
import type { createFatalGrace } from './fatal-grace.ts'

/**
 * Leaves the error that ends this process in a file for the master. Written synchronously: what a dying process sends
 * over IPC can be lost with it, so that is the way only where there is no other. The 'uncaughtExceptionMonitor' changes
 * nothing of Node's own handling; an app with a handler of its own may live on, so the record says when it was written.
 */
export function recordCrashes (file: string,
  { channel, requests, fatalGrace }: { channel: Channel, requests: Requests,
    fatalGrace: ReturnType<typeof createFatalGrace> })
{
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    // Only the first error ended the process; others may follow from it.
    if (fatalGrace.isDying()) return fatalGrace.endNow()
    const note = takeNote(error, origin)
    if (note) leaveNote(note)
    fatalGrace.begin(error, origin, note)
  })

  function takeNote (error: unknown, origin: string) {
    try {
      return describeCrash(error, origin, requests.inFlight())
    } catch {
      // The app may have replaced what is used here. The error still reaches stderr, and the exit code reaches the
      // master.
      return null
    }
  }

  function leaveNote (note: CrashNote) {
    try {
      writeFileSync(file, JSON.stringify(note), { mode: 0o600 })
    } catch {
      // ENOSPC; EACCES where the app has dropped its privileges since.
      channel.send({ type: 'crash-note', note })
    }
  }
}
