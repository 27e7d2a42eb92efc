/**
 * What an operator means by a signal to the master. Returns a function that stops listening.
 * @param {{ onStop: () => void, onKill: () => void, onDeploy: () => void, onRestart: () => void }} actions
 *   `onKill`: asked to stop a second time
 * @param {NodeJS.Process} [source]
 */
export function listenForSignals ({ onStop, onKill, onDeploy, onRestart }, source = process) {
  let isStopping = false
  const stop = () => {
    if (isStopping) return onKill()
    isStopping = true
    onStop()
  }
  const handlers = Object.entries({ SIGTERM: stop, SIGINT: stop, SIGHUP: onDeploy, SIGUSR2: onRestart })

  for (const [signal, handler] of handlers) source.on(signal, handler)
  return () => {
    for (const [signal, handler] of handlers) source.off(signal, handler)
  }
}
