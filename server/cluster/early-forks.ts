import type { WorkerHandle as Handle } from './worker-handle.ts'
import type { Command } from '../lifecycle/state.ts'

type Order = Extract<Command, { type: 'fork' }>

/**
 * Forks what will take the place of a lost worker before anything is read or written for its end, which takes longer
 * than the fork. Whoever decides then, knowing all, takes the worker; one that nobody has taken is ended: it has not
 * heard anything yet.
 */
export function createEarlyForks ({ start }: {
  /** `isWanted`: whether anybody is to hear of it */
  start: (order: Order, isWanted: () => boolean) => Handle
}) {
  /** by worker */
  const started: Map<number, { order: Order, handle: Handle, wish: { isWanted: boolean } }> = new Map()

  return {
    /** `commands`: what would be done if nothing more were known */
    fork (commands: Command[]) {
      for (const command of commands) {
        if (command.type === 'fork') startOne(command)
      }
    },

    /** Null: it was not forked yet, or for another slot or release */
    take ({ worker, slot, release }: Order): Handle | null {
      const found = started.get(worker)
      if (found?.order.slot !== slot || found.order.release.id !== release.id) return null
      started.delete(worker)
      return found.handle
    },

    /** All has been decided: what is left is not needed. */
    drop () {
      for (const [worker, one] of started) {
        started.delete(worker)
        one.wish.isWanted = false
        one.handle.kill()
      }
    }
  }

  function startOne (order: Order) {
    const wish = { isWanted: true }
    try {
      started.set(order.worker, { order, wish, handle: start(order, () => wish.isWanted) })
    } catch {
      // It is tried again where it has been decided, and then told of.
    }
  }
}
