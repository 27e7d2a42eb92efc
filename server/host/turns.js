/** An app that takes longer to get ready than this keeps no other one from starting. */
export const TURN_MS = 3000

/**
 * Many apps that start at once on few CPUs would make all of them slow, and the first answer as late as the last. So some of
 * them start at a time, in the order in which they ask.
 * @param {{ atOnce: number, after?: Promise<unknown>, turnMs?: number, timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> }} options
 *   `after`: what comes before the first of them
 * @returns {import('../app/turn.js').Turns}
 */
export function createTurns ({ atOnce, after = Promise.resolve(), turnMs = TURN_MS, timers = globalThis }) {
  /** @type {(() => void)[]} */
  const waiting = []
  let running = 0
  let isOpen = false
  after.then(() => {
    isOpen = true
    next()
  })

  return {
    take (over) {
      return new Promise((resolve) => {
        waiting.push(() => {
          resolve()
          endTurn(over)
        })
        next()
      })
    }
  }

  function next () {
    if (!isOpen) return
    while (running < atOnce && waiting.length > 0) {
      running++
      waiting.shift()?.()
    }
  }

  /** @param {Promise<unknown>} over */
  function endTurn (over) {
    let isOver = false
    const timer = timers.setTimeout(end, turnMs)
    over.then(end, end)

    function end () {
      if (isOver) return
      isOver = true
      timers.clearTimeout(timer)
      running--
      next()
    }
  }
}
