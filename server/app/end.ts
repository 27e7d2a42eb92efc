import { waitAtMost } from '../system/wait-at-most.ts'
import type { App } from './app.ts'
import type { Closers } from '../system/closers.ts'
import type { Exit } from '../keeper/link.ts'

const KILL_PATIENCE_MS = 1000

/** The ways in which an app leaves its master. `closers`: of all that was opened for it. */
export function createEnd ({ deck, supervisor, events, hooks, jobs, startedAt }: App, closers: Closers) {
  return {
    /** `exitCode`: 1: without any grace */
    async stop (exitCode: number) {
      const grace = exitCode === 0 ? {} : { graceMs: 0 }
      const commandsEnded = Promise.all([hooks.close(grace), jobs.close(grace)])
      if (exitCode !== 0) await killWorkers()
      await commandsEnded
      tellStopped({ code: exitCode })
      await closers.close()
    },

    /** The next master has its workers ready: it gets all that there is one of. */
    async handOver () {
      supervisor.handOver()
      await Promise.all([hooks.close(), jobs.handOver()])
      tellStopped({ cause: 'upgrade', code: 0 })
      await closers.close({ handsOver: true })
    },

    /**
     * It goes on in another process, a host or a deck of its own: its workers serve on by themselves until those of the
     * other master replace them. `message`: for the history. Returns `exits`: how each worker ends that is a child of
     * this process.
     */
    async move (message: string): Promise<{ exits: Promise<Exit>[] }> {
      const exits = supervisor.letGo({ hasMoved: true })
      await Promise.all([hooks.close(), jobs.close({ cause: 'upgrade', why: 'as the app went on in another process' })])
      tellStopped({ cause: 'upgrade', code: 0, message })
      await closers.close({ handsOver: true })
      return { exits }
    },

    /**
     * Its part of this master has failed. Its workers serve on, its jobs run on, and whoever opens it anew goes on with
     * them, as after a death. Returns `exits`: how each of them ends.
     */
    async letGo (): Promise<{ exits: Promise<Exit>[] }> {
      const exits = [...supervisor.letGo(), ...jobs.letGo()]
      await Promise.all([hooks.close({ graceMs: 0 }), jobs.close({ graceMs: 0 })]).catch(() => {})
      await closers.close({ handsOver: true, hasFailed: true }).catch(() => {})
      return { exits }
    }
  }

  function tellStopped (how: { code: number, cause?: string, message?: string }) {
    events.publish({ type: 'master.stopped', pid: process.pid, uptimeMs: Date.now() - Date.parse(startedAt), ...how })
  }

  /** Their exits are still recorded; one that the kernel does not let go is not waited for. */
  async function killWorkers () {
    if (supervisor.snapshot().state !== 'stopping') deck.dispatch({ type: 'stop', actor: 'signal' })
    supervisor.killAll('the master was told to end at once')
    await waitAtMost(supervisor.finished, KILL_PATIENCE_MS)
  }
}
