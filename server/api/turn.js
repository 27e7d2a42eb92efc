/**
 * A turn of the loop for each who waits, one after the other: many callers who each hold it for a few milliseconds do
 * not hold it for seconds together.
 */
export const nextTurn = createTurns()

/** @returns {() => Promise<void>} */
export function createTurns () {
  /** @type {(() => void)[]} */
  const waiting = []

  return () => new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(callNext)
  })

  function callNext () {
    waiting[0]()
    waiting.shift()
    if (waiting.length > 0) setImmediate(callNext)
  }
}
