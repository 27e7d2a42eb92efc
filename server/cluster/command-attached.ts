import { durationText } from '../lifecycle/duration.ts'
import { isAlive, signalProcess, type ProcessIdentity } from '../system/process-identity.ts'
import { failureOf, type CommandEnd, type CommandRun } from './command-run.ts'

/** Every so often it looks whether the command still runs: perhaps nobody tells that it has ended. */
const LOOK_EVERY_MS = 500
/** Whoever has started the command gets this long to tell how it has ended. */
const TOLD_WITHIN_MS = 2000
const TERM_GRACE_MS = 5000

/**
 * Follows a command that somebody else has started, in a terminal of theirs: they tell how it ends, and its output is
 * theirs.
 */
export function attachCommand ({ name, identity, ageMs = 0 }: {
  name: string,
  identity: ProcessIdentity,
  /** for how long it has been running */
  ageMs?: number
}): CommandRun & { tellEnd: (exit: { code: number | null, signal: string | null }) => void } {
  const startedAt = performance.now() - ageMs
  /** Why it was told to end. */
  let endedFor: string | null = null
  let goneMs = 0
  let killTimer: NodeJS.Timeout | undefined
  const over: PromiseWithResolvers<CommandEnd> = Promise.withResolvers()
  const timer = setInterval(look, LOOK_EVERY_MS)
  timer.unref()

  return { name, identity, handles: { stdout: null, stderr: null }, ended: over.promise,
    end (why, { graceMs = TERM_GRACE_MS } = {}) {
      endedFor ??= why
      clearTimeout(killTimer)
      killTimer = setTimeout(() => signalProcess(identity, 'SIGKILL'), graceMs)
      signalProcess(identity, 'SIGTERM')
    }, leave: stopLooking, letGo () {
    stopLooking()
    return null
  }, tellEnd ({ code, signal }) {
    finish({ code, signal, failure: failureOf({ code, signal }) })
  } }

  function look () {
    if (isAlive(identity)) return
    goneMs += LOOK_EVERY_MS
    if (goneMs > TOLD_WITHIN_MS) finish({ code: null, signal: null, failure: 'has ended, and nobody told how' })
  }

  function stopLooking () {
    clearInterval(timer)
    clearTimeout(killTimer)
  }

  function finish ({ code, signal, failure }: { code: number | null, signal: string | null, failure: string | null }) {
    stopLooking()
    const durationMs = Math.round(performance.now() - startedAt)
    const why = endedFor ?? (failure && `${failure} after ${durationText(durationMs)}`)
    over.resolve({ passed: why === null, code, signal, durationMs, timedOut: false, reason: why && `${name} ${why}`,
      output: '' })
  }
}
