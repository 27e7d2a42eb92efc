import { setTimeout as wait } from 'node:timers/promises'
import { errorReason } from '../../server/errors.ts'
import type { Load } from './loads.ts'
import type { Ledger } from './ledger.ts'

/** After this an answer comes no more: the slowest takes ten seconds, and a hung worker is ended after a few. */
const PATIENCE_MS = 45_000

/** A request and what became of it. */
export type Exchange = {
  id: string,
  /** by performance.now() */
  startedAt: number,
  endedAt: number,
  /** `port of the server:port of the client`, once that is known */
  connection: string | undefined,
  /** nothing was asked over that connection before */
  isFirst: boolean,
  failure: string | null,
  /** which process had it when it failed, as far as that is known */
  owner: number | undefined,
  isHung: boolean,
  /** it was not sent: the connection had been closed before */
  isIdle: boolean,
  /** its server has ended a long-lived connection in the way of its protocol, so that the client opens another one */
  isToldToLeave: boolean
}
/** What asks over one connection, or several. */
export type Session = {
  /** rejects if the request has been sent and not answered, or wrongly; tells the exchange its connection */
  ask: (exchange: Exchange) => Promise<void>,
  close: () => void
}
/** what became of all requests of a load */
export type Tally = { name: string, requests: number, failures: Exchange[] }
export type Clients = ReturnType<typeof startClients>

/** Clients that ask, pause and ask again, each over a session of its own. */
export function startClients (
  { name, clients: count, streams = 1, pauseMs }: Pick<Load, 'name' | 'clients' | 'streams' | 'pauseMs'>,
  open: (client: number) => Session,
  ledger: () => Ledger
) {
  const failures: Exchange[] = []
  const stopping = new AbortController()
  const clients = Array.from({ length: count }, (_, number) => ({ number, begun: 0, goal: 0 }))
  let asked = 0
  let requests = 0
  const ended = Promise.all(clients.map(keepAsking))

  return {
    name,

    /** Each client asks once more; what is under way comes to its end. */
    async finish (): Promise<Tally> {
      for (const client of clients) client.goal = client.begun + 1
      return await stop()
    },

    stop
  }

  /** Nothing more is asked; what is under way comes to its end. */
  async function stop (): Promise<Tally> {
    stopping.abort()
    await ended
    return { name, requests, failures }
  }

  async function keepAsking (client: typeof clients[0]) {
    const session = open(client.number)
    while (!stopping.signal.aborted || client.begun < client.goal) {
      client.begun++
      await Promise.all(Array.from({ length: streams }, () => exchange(session)))
      await wait(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
    session.close()
  }

  async function exchange (session: Session) {
    const own = blankExchange(`${name}-${++asked}`)
    const patience = new AbortController()
    const late = wait(PATIENCE_MS, undefined, { signal: patience.signal }).then(() => {
      throw Object.assign(new Error(`no answer within ${PATIENCE_MS} ms`), { isLate: true })
    })
    late.catch(() => {})
    try {
      await Promise.race([session.ask(own), late])
    } catch (error) {
      own.failure = errorReason(error)
      own.isHung = error instanceof Error && 'isLate' in error
      // Now, as ports come back.
      own.owner = ledger().ownerOf(own)
      failures.push(own)
    }
    patience.abort()
    own.endedAt = performance.now()
    requests++
  }
}

export function blankExchange (id: string): Exchange {
  return { id, startedAt: performance.now(), endedAt: 0, connection: undefined, isFirst: false, failure: null,
    owner: undefined, isHung: false, isIdle: false, isToldToLeave: false }
}
