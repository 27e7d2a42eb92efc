/** Lets so much be done at a time; the rest waits in the order in which it came. */
export function createSemaphore (atOnce: number) {
  const waiting: (() => void)[] = []
  let running = 0

  return { async run<T> (work: () => T | Promise<T>): Promise<T> {
    if (running === atOnce) await new Promise((resolve) => waiting.push(() => resolve(undefined)))
    else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  } }
}
