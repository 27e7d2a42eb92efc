const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

/**
 * What an operator means by signals to a command that runs until it is stopped. `stop`: the first one; `kill`: another
 * one.
 */
export function createInterruption () {
  const [stopping, killing] = [new AbortController(), new AbortController()]
  const stopOrKill = () => (stopping.signal.aborted ? killing : stopping).abort()
  // A shell passes on what the kernel has sent already, so a second hang-up means nothing more.
  const hangUp = () => stopping.abort()
  for (const signal of SIGNALS) process.on(signal, stopOrKill)
  process.on('SIGHUP', hangUp)

  return { stop: stopping.signal, kill: killing.signal, leave () {
    for (const signal of SIGNALS) process.off(signal, stopOrKill)
    process.off('SIGHUP', hangUp)
  } }
}
