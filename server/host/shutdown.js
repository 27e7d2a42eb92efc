import { createDeferred } from '../system/deferred.js'
import { waitAtMost } from '../system/wait-at-most.js'

const KILL_PATIENCE_MS = 1000

/** @typedef {ReturnType<typeof createShutdown>} Shutdown */

/**
 * The two ways in which a master leaves.
 * @param {import('../app/app.js').App} app @param {import('./host.js').Host} host
 */
export function createShutdown ({ deck, supervisor, events, hooks, startedAt }, { keeper, closers }) {
  /** @type {ReturnType<typeof createDeferred<number>>} the exit code */
  const stopped = createDeferred()
  let hasBegun = false

  return {
    stopped: stopped.reached,

    get hasBegun () { return hasBegun },

    /** @param {number} exitCode 1: without any grace */
    async stop (exitCode) {
      if (hasBegun) return
      hasBegun = true
      const delivered = keeper.deliver({ type: 'ending' })
      const hooksEnded = hooks.close(exitCode === 0 ? {} : { graceMs: 0 })
      if (exitCode !== 0) await killWorkers()
      await hooksEnded
      tellStopped({ code: exitCode })
      await closers.close()
      await delivered
      stopped.reach(exitCode)
    },

    /** The next master has its workers ready: it gets all that there is one of. */
    async handOver () {
      if (hasBegun) return
      hasBegun = true
      supervisor.handOver()
      await hooks.close()
      tellStopped({ cause: 'upgrade', code: 0 })
      await closers.close({ handsOver: true })
      await keeper.deliver({ type: 'handed-over' })
      stopped.reach(0)
    }
  }

  /** @param {{ code: number, cause?: string }} how */
  function tellStopped (how) {
    events.publish({ type: 'master.stopped', pid: process.pid, uptimeMs: Date.now() - Date.parse(startedAt), ...how })
  }

  /** Their exits are still recorded; one that the kernel does not let go is not waited for. */
  async function killWorkers () {
    if (supervisor.snapshot().state !== 'stopping') deck.dispatch({ type: 'stop', actor: 'signal' })
    supervisor.killAll('the master was told to end at once')
    await waitAtMost(supervisor.finished, KILL_PATIENCE_MS)
  }
}
