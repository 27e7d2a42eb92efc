import { setTimeout as wait } from 'node:timers/promises'

/** After this an answer comes no more: the slowest takes ten seconds, and a hung worker is ended after a few. */
const PATIENCE_MS = 45_000

/**
 * A request and what became of it.
 * @typedef {object} Exchange
 * @property {string} id
 * @property {number} startedAt by performance.now()
 * @property {number} endedAt
 * @property {string | undefined} connection `port of the server:port of the client`, once that is known
 * @property {boolean} isFirst nothing was asked over that connection before
 * @property {string | null} failure
 * @property {number | undefined} owner which process had it when it failed, as far as that is known
 * @property {boolean} isHung
 * @property {boolean} isIdle it was not sent: the connection had been closed before
 * @property {boolean} isToldToLeave its server has ended a long-lived connection in the way of its protocol, so that the client opens another one
 */
/**
 * What asks over one connection, or several.
 * @typedef {object} Session
 * @property {(exchange: Exchange) => Promise<void>} ask rejects if the request has been sent and not answered, or wrongly; tells the exchange its connection
 * @property {() => void} close
 */
/** @typedef {{ name: string, requests: number, failures: Exchange[] }} Tally what became of all requests of a load */
/** @typedef {ReturnType<typeof startClients>} Clients */

/**
 * Clients that ask, pause and ask again, each over a session of its own.
 * @param {Pick<import('./loads.js').Load, 'name' | 'clients' | 'streams' | 'pauseMs'>} load
 * @param {(client: number) => Session} open
 * @param {() => import('./ledger.js').Ledger} ledger
 */
export function startClients ({ name, clients: count, streams = 1, pauseMs }, open, ledger) {
  /** @type {Exchange[]} */
  const failures = []
  const stopping = new AbortController()
  const clients = Array.from({ length: count }, (_, number) => ({ number, begun: 0, goal: 0 }))
  let asked = 0
  let requests = 0
  const ended = Promise.all(clients.map(keepAsking))

  return {
    name,

    /** Each client asks once more; what is under way comes to its end. @returns {Promise<Tally>} */
    async finish () {
      for (const client of clients) client.goal = client.begun + 1
      return await stop()
    },

    stop
  }

  /** Nothing more is asked; what is under way comes to its end. @returns {Promise<Tally>} */
  async function stop () {
    stopping.abort()
    await ended
    return { name, requests, failures }
  }

  async function keepAsking (/** @type {typeof clients[0]} */ client) {
    const session = open(client.number)
    while (!stopping.signal.aborted || client.begun < client.goal) {
      client.begun++
      await Promise.all(Array.from({ length: streams }, () => exchange(session)))
      await wait(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
    session.close()
  }

  async function exchange (/** @type {Session} */ session) {
    const own = blankExchange(`${name}-${++asked}`)
    const patience = new AbortController()
    const late = wait(PATIENCE_MS, undefined, { signal: patience.signal }).then(() => { throw Object.assign(new Error(`no answer within ${PATIENCE_MS} ms`), { isLate: true }) })
    late.catch(() => {})
    try {
      await Promise.race([session.ask(own), late])
    } catch (/** @type {any} */ error) {
      own.failure = String(error.code ?? error.message)
      own.isHung = error.isLate === true
      // Now, as ports come back.
      own.owner = ledger().ownerOf(own)
      failures.push(own)
    }
    patience.abort()
    own.endedAt = performance.now()
    requests++
  }
}

/** @param {string} id @returns {Exchange} */
export function blankExchange (id) {
  return { id, startedAt: performance.now(), endedAt: 0, connection: undefined, isFirst: false, failure: null, owner: undefined, isHung: false, isIdle: false, isToldToLeave: false }
}
