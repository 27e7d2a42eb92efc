import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * What asks over one connection, or channel. One that stays goes on with another connection, unasked, after the server
 * has said that this one ends.
 */
export type Session = {
  /** rejects if the request has been sent and not answered, or wrongly */
  ask: () => Promise<string>,
  close: () => void
}
export type Failure = { client: number, isFresh: boolean, startedAt: number, endedAt: number, reason: string }

const STAYING = 4
const FRESH = 4
// Some hundred requests a second: enough to meet each moment, and they leave time to boot.
const THINK_MS = 20

/**
 * Clients that ask again and again, one request each at a time: half of them stay on their connection, half open one
 * for each request. `expected`: what every answer has to hold.
 */
export function createClients (open: (isFresh: boolean) => Session, expected: string | RegExp) {
  const failures: Failure[] = []
  const pids: Set<number> = new Set()
  const rounds = new EventEmitter().setMaxListeners(0)
  const clients = Array.from({ length: STAYING + FRESH },
    (_, number) => ({ number, isFresh: number >= STAYING, begun: 0, done: 0 }))
  const stopping = new AbortController()
  const ended = Promise.all(clients.map(keepAsking))

  return {
    /** Of those that answer with their pid. */
    pids,

    count: () => clients.reduce((sum, { done }) => sum + done, 0),

    /** Until every client has had an answer, or none, to something that it asked from now on. */
    async settle () {
      const goals = clients.map(({ begun }) => begun + 1)
      while (clients.some(({ done }, index) => done < goals[index])) await once(rounds, 'done')
    },

    /** @returns those since the last time */
    takeFailures: (): Failure[] => failures.splice(0),

    async stop () {
      stopping.abort()
      await ended
    }
  }

  async function keepAsking (client: typeof clients[0]) {
    const staying = client.isFresh ? null : open(false)
    while (!stopping.signal.aborted) {
      client.begun++
      const startedAt = performance.now()
      const reason = await ask(staying ?? open(true), staying === null)
      if (reason !== null)
        failures.push({ client: client.number, isFresh: client.isFresh, startedAt, endedAt: performance.now(), reason })
      client.done++
      rounds.emit('done')
      await sleep(THINK_MS)
    }
    staying?.close()
  }

  async function ask (session: Session, isOnce: boolean) {
    try {
      check(await session.ask())
      return null
    } catch (error) {
      const { code, details = '', message } = error as Error & { code?: string | number, details?: string }
      return code ? `${code} ${details}`.trim() : message
    } finally {
      if (isOnce) session.close()
    }
  }

  function check (answer: string) {
    const isRight = typeof expected === 'string' ? answer.includes(expected) : expected.test(answer)
    if (!isRight) throw new Error(`answered ${JSON.stringify(answer.slice(0, 80))}`)
    const pid = /\bpid (\d+)/.exec(answer)?.[1]
    if (pid) pids.add(Number(pid))
  }
}
