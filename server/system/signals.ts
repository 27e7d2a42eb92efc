import { hasControllingTerminal } from './terminal.ts'
import type { EventEmitter } from 'node:events'

/** those that a terminal sends included */
export const STOP_SIGNALS: NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGQUIT']
export const SIGNALS: NodeJS.Signals[] = [...STOP_SIGNALS, 'SIGHUP', 'SIGUSR2']

/**
 * What an operator means by a signal to the master. Returns a function that stops listening. `onKill`: asked
 * to stop a second time; `sources`: who signals every process of a group is heard by this one, and by its
 * keeper, and means it once; `hasTerminal`: a hang-up is the end of it, and no order to deploy.
 */
export function listenForSignals (
  { onStop, onKill, onDeploy, onRestart }: { onStop: () => void, onKill: () => void, onDeploy: () => void,
    onRestart: () => void },
  { sources = [process], hasTerminal = hasControllingTerminal() }: { sources?: EventEmitter[], hasTerminal?: boolean } =
    {}
) {
  let isStopping = false
  const leaves = sources.map(listenTo)
  return () => {
    for (const leave of leaves) leave()
  }

  function listenTo (source: EventEmitter) {
    let hasAsked = false
    const onStopSignal = () => {
      if (hasAsked) return onKill()
      hasAsked = true
      if (isStopping) return
      isStopping = true
      onStop()
    }
    // A shell passes on what the kernel has sent already, so a second one means nothing more.
    const hangUp = () => {
      if (!isStopping) onStopSignal()
    }
    const handlers = Object.entries({ ...Object.fromEntries(STOP_SIGNALS.map((signal) => [signal, onStopSignal])),
      SIGHUP: hasTerminal ? hangUp : onDeploy, SIGUSR2: onRestart })
    for (const [signal, handler] of handlers) source.on(signal, handler)
    return () => {
      for (const [signal, handler] of handlers) source.off(signal, handler)
    }
  }
}
