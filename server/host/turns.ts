/** An app that takes longer to get ready than this keeps no other one from starting. */
export const TURN_MS = 3000
/** A rollout that takes longer than this keeps no other one from beginning. */
export const ROLLOUT_TURN_MS = 60_000

export type Turns = ReturnType<typeof createTurns>
type Turn = { app: string, over: Promise<unknown>, begun: PromiseWithResolvers<void> }

/**
 * Many apps that start or are deployed at once on few CPUs would make all of them slow, and the first answer as late as
 * the last. So some of them do so at a time, in the order in which they ask.
 */
export function createTurns (
  { atOnce, turnMs = TURN_MS, timers = globalThis }: { atOnce: number, turnMs?: number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> }
) {
  const waiting: Turn[] = []
  const running: Set<Turn> = new Set()

  return {
    /** @returns as that app sees them */
    of: (app: string): import('../cluster/rollout-turn.ts').Turns => ({ take (over) {
      const turn: Turn = { app, over, begun: Promise.withResolvers() }
      waiting.push(turn)
      next()
      return running.has(turn) ? null : turn.begun.promise
    }, taken: () => Array.from(running, (turn) => turn.app) })
  }

  function next () {
    for (let turn; running.size < atOnce && (turn = waiting.shift());) beginTurn(turn)
  }

  function beginTurn (turn: Turn) {
    const end = () => {
      timers.clearTimeout(timer)
      if (running.delete(turn)) next()
    }
    running.add(turn)
    const timer = timers.setTimeout(end, turnMs)
    turn.over.then(end, end)
    turn.begun.resolve()
  }
}
