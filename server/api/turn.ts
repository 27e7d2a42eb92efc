/**
 * Gives each caller a turn of the event loop, one after the other: many callers who each need a few milliseconds would
 * otherwise block it for seconds.
 */
export const nextTurn = createTurns()

export function createTurns (): () => Promise<void> {
  const waiting: (() => void)[] = []

  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(callNext)
    })

  function callNext () {
    waiting[0]()
    waiting.shift()
    if (waiting.length > 0) setImmediate(callNext)
  }
}
