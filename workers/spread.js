import { clearInterval, setInterval } from 'node:timers'

const TICK_MS = 20

/**
 * Calls back for each of many within `ms`, evenly and in no order.
 * @template Item
 * @param {Item[]} items @param {number} ms @param {(item: Item) => void} each
 * @returns {NodeJS.Timeout | undefined} what it waits by
 */
export function spreadOver (items, ms, each) {
  const order = shuffle(items)
  const moments = evenMoments(items.length, ms)
  // What a busy machine has delayed is made up for slowly.
  const mostAtOnce = ms > 0 ? Math.max(1, Math.floor(2 * items.length * TICK_MS / ms)) : Infinity
  const begin = performance.now()
  let next = 0
  callDue()
  if (next === order.length) return
  const timer = setInterval(() => {
    callDue()
    if (next === order.length) clearInterval(timer)
  }, TICK_MS).unref()
  return timer

  function callDue () {
    const elapsed = performance.now() - begin
    const stop = Math.min(order.length, next + mostAtOnce)
    while (next < stop && moments[next] <= elapsed) each(order[next++])
  }
}

/** Each has a part of the time of its own, as long as any other's, and a random moment in it. @param {number} count @param {number} ms @returns {number[]} ascending, ms */
export function evenMoments (count, ms) {
  return Array.from({ length: count }, (_, index) => (index + Math.random()) / count * ms)
}

/** @template Item @param {Item[]} items */
function shuffle (items) {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]]
  }
  return order
}
