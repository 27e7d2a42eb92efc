import { once } from 'node:events'
import net from 'node:net'

/**
 * Below those that the system gives to outgoing connections, one of which could be using a port that was free a moment
 * ago.
 */
const FIRST = 10_000
const LAST = 30_000
/**
 * Those that were given out before: of fifty that are drawn at random, two would be the same in one of twenty tests.
 */
const given: Set<number> = new Set()

/** @returns a port that nobody listens on */
export async function freePort (): Promise<number> {
  const { port, close } = await busyPort()
  await close()
  return port
}

/** @returns a port that somebody else has, on every address */
export async function busyPort (): Promise<{ port: number, close: () => Promise<void> }> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (given.has(port)) continue
    given.add(port)
    const server = net.createServer()
    try {
      await once(server.listen(port), 'listening')
    } catch {
      // EADDRINUSE: another one, then.
      continue
    }
    return { port, close: async () => {
      await once(server.close(), 'close')
    } }
  }
}
