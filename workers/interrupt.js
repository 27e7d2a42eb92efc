import { setTimeout } from 'node:timers'

const MASTER_REACTS_WITHIN_MS = 1000

/**
 * Ctrl-C in a terminal reaches every process of the foreground group, and would end the workers in the middle of
 * their requests while the master drains them. So SIGINT waits for the master's word, and has its usual effect if
 * none comes because it was meant for this worker alone. An app with a handler of its own keeps it.
 * @param {{ isDraining: () => boolean }} options
 */
export function deferInterrupt ({ isDraining }) {
  process.on('SIGINT', defer)

  function defer () {
    if (process.listenerCount('SIGINT') > 1) return
    setTimeout(() => {
      if (isDraining()) return
      process.removeListener('SIGINT', defer)
      process.kill(process.pid, 'SIGINT')
    }, MASTER_REACTS_WITHIN_MS)
  }
}
