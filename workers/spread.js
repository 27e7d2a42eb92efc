import { clearInterval, setInterval } from 'node:timers'

const TICK_MS = 20

/**
 * Calls back for each of many within `ms`, evenly and in no order: each has a moment of its own in a part of the time
 * that is as long as that of any other.
 * @template Item
 * @param {Item[]} items @param {number} ms @param {(item: Item) => void} each
 * @param {{ random?: () => number, now?: () => number }} [options]
 * @returns {NodeJS.Timeout | undefined} what it waits by
 */
export function spreadOver (items, ms, each, { random = Math.random, now = () => performance.now() } = {}) {
  const order = shuffle(items, random)
  const moments = order.map((_, index) => (index + random()) / order.length * ms)
  const begin = now()
  let next = 0
  callDue()
  if (next === order.length) return
  const timer = setInterval(() => {
    callDue()
    if (next === order.length) clearInterval(timer)
  }, TICK_MS).unref()
  return timer

  function callDue () {
    const elapsed = now() - begin
    while (next < order.length && moments[next] <= elapsed) each(order[next++])
  }
}

/** @template Item @param {Item[]} items @param {() => number} random */
function shuffle (items, random) {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]]
  }
  return order
}
