import { clearInterval, setInterval } from 'node:timers'

const TICK_MS = 20

/** Calls back for each of many within `ms`, evenly and in no order. Returns what it waits by. */
export function spreadOver<Item> (items: Item[], ms: number, each: (item: Item) => void): NodeJS.Timeout | undefined {
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

/** Each has a part of the time of its own, as long as any other's, and a random moment in it. @returns ascending, ms */
export function evenMoments (count: number, ms: number): number[] {
  return Array.from({ length: count }, (_, index) => (index + Math.random()) / count * ms)
}

function shuffle<Item> (items: Item[]) {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    ;[order[last], order[other]] = [order[other], order[last]]
  }
  return order
}
