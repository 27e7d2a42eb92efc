import type { KeeperLink } from '../keeper/link.ts'

export type Shutdown = ReturnType<typeof createShutdown>

/** The ways in which a master leaves. `end`: of all that is in this process. */
export function createShutdown (
  { keeper, end }: { keeper: KeeperLink,
    end: { stop: (exitCode: number) => Promise<void>, handOver: () => Promise<void> } }
) {
  /** the exit code */
  const stopped: PromiseWithResolvers<number> = Promise.withResolvers()
  let hasBegun = false

  return {
    stopped: stopped.promise,

    get hasBegun () {
      return hasBegun
    },

    /** `exitCode`: 1: without any grace */
    async stop (exitCode: number) {
      if (hasBegun) return
      hasBegun = true
      const delivered = keeper.deliver({ type: 'ending' })
      await end.stop(exitCode)
      await delivered
      stopped.resolve(exitCode)
    },

    /**
     * What is in this process moves to another one. `move`: resolves with the exit code once nothing is left here; 0:
     * no next master is wanted.
     */
    async move (move: () => Promise<number>) {
      if (hasBegun) return
      hasBegun = true
      const exitCode = await move()
      if (exitCode === 0) await keeper.deliver({ type: 'ending' })
      stopped.resolve(exitCode)
    },

    /** The next master has its workers ready: it gets all that there is one of. */
    async handOver () {
      if (hasBegun) return
      hasBegun = true
      await end.handOver()
      await keeper.deliver({ type: 'handed-over' })
      stopped.resolve(0)
    }
  }
}
