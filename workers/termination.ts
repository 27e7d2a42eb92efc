import cluster from 'node:cluster'
import { setImmediate, setTimeout } from 'node:timers'
import type { Channel } from './channel.ts'
import type { createDrain } from './drain.ts'
import type { outliveMaster } from './orphan.ts'

/** Long enough for a busy machine and a starting master. */
const MASTER_REACTS_WITHIN_MS = 2000
/** An app that handles only the shutdown message gets this long. */
const SHUTDOWN_MESSAGE_GRACE_MS = 1000

/**
 * The signals that end a worker. Ctrl-C, and whoever ends a whole process group or control group, reaches every
 * process, and would end the workers in the middle of their requests while the master drains them. So SIGINT and
 * SIGTERM wait for the master's word, and have their usual effect if none comes because they were meant for this worker
 * alone. An app with a handler of its own keeps it.
 */
export function createTermination (
  { channel, drain, orphan }: { channel: Channel,
    drain: Pick<ReturnType<typeof createDrain>, 'isDraining' | 'isDrained' | 'letGo'>,
    orphan: Pick<ReturnType<typeof outliveMaster>, 'leave' | 'isEnding'> }
) {
  const ownMessageListeners = messageListeners()
  let hearsMessages = false
  /** The master has told this worker to end. */
  let isTold = false
  let hasHeard = false
  process.on('SIGINT', onInterrupt)
  listenForTerm()
  channel.on('terminate', () => {
    isTold = true
    if (hasHeard) exitApp()
  })

  return {
    /** Called as the drain begins: by its end the app may have removed its listeners. */
    prepare () {
      hearsMessages = messageListeners() > ownMessageListeners
      listenForTerm()
    }
  }

  function onInterrupt () {
    if (process.listenerCount('SIGINT') === 1) deferListener('SIGINT', onInterrupt)
  }

  // First, and gone when the app's own are called: some of them count who else listens.
  function listenForTerm () {
    process.removeListener('SIGTERM', onTerm)
    process.prependOnceListener('SIGTERM', onTerm)
  }

  function onTerm () {
    setImmediate(listenForTerm)
    if (process.listenerCount('SIGTERM') > 0) return drain.isDraining() && drain.letGo()
    if (drain.isDrained() || isTold || orphan.isEnding()) return exitApp()
    if (!drain.isDraining()) return orphan.leave() || deferListener('SIGTERM', onTerm)
    // The master's message may be on its way. Without it the signal came from somebody else, and open answers go first.
    hasHeard = true
  }

  function deferListener (signal: NodeJS.Signals, listener: () => void) {
    setTimeout(() => {
      if (drain.isDraining()) return
      process.removeListener(signal, listener)
      process.kill(process.pid, signal)
    }, MASTER_REACTS_WITHIN_MS)
  }

  /** Ends an app without a handler of its own as `process.exit(0)` would: its 'exit' listeners run. */
  function exitApp () {
    // One that listens for messages may be waiting for `shutdown`.
    if (hearsMessages) setTimeout(() => process.exit(), SHUTDOWN_MESSAGE_GRACE_MS)
    else process.exit()
  }
}

/** node:cluster has a listener of its own in every worker. */
function messageListeners () {
  return process.listenerCount('message') + (cluster.worker?.listenerCount('message') ?? 0)
}
