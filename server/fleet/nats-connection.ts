import { readFileSync } from 'node:fs'
import { attempt, DeckError, errorText } from '../errors.ts'
import { makeEventStream } from './event-stream.ts'
import { probeServers } from './server-probe.ts'
import { isMissing, makeReplicated, natsCode } from './streams.ts'
import type { NatsConnection } from '@nats-io/transport-node'
import type { KvOptions } from '@nats-io/kv'

/**
 * Connects a fleet to NATS JetStream: two buckets, a stream, questions and answers. It tries to connect for ever. While
 * NATS is out of reach its calls answer `away` at once and throw nothing.
 */
export type Connection = ReturnType<typeof createNatsConnection>
export type FleetOptions = { servers: readonly string[], name: string, token?: string, credentials?: string,
  tls: { ca?: string, cert?: string, key?: string } }
/** `since`: when `isConnected` changed; `problem`: why NATS is out of reach, or what failed last */
export type Presence = { isConnected: boolean, since: string, server: string | null, problem: string | null }
type Written = { is: 'written', revision: number } | { is: 'refused' } | { is: 'away', reason: string }
type Outcome<T> = { is: 'done', value: T } | { is: 'away', reason: string }

/** A member is silent if it has not reported for this time. */
export const SILENT_AFTER_MS = 15_000
/** NATS removes the report of a silent member after this time. */
const FORGET_AFTER_MS = 7 * 24 * 60 * 60_000
/** A change of leaders can lose an answer. On a slow network a call may take as long as some round trips. */
const CALL_WITHIN_MS = 3000
const ROUND_TRIPS = 4
const MAX_CALL_MS = 60_000
/** Enough for a network on which each message takes five seconds. */
const CONNECT_WITHIN_MS = 20_000
const RETRY_MS = 1000
/** The first retry is early, since another server may take over at once. */
const FIRST_RETRY_MS = 250
const STEADY_MS = 5000
const RENEW_MS = 5000
const MAX_SERVERS = 32
const PING_MS = 10_000
const MAX_RETRY_MS = 2000
const OPEN_WITHIN_MS = 3000
const MAX_OPEN_MS = 120_000
/** The code of JetStream for "wrong last sequence". */
const WRONG_REVISION = 10071

/** @throws {DeckError} fleet-away */
export function valueOrThrow<T> (outcome: Outcome<T>): T {
  if (outcome.is === 'away') throw outOfReach(outcome.reason)
  return outcome.value
}

export function outOfReach (reason: string): DeckError {
  return new DeckError('fleet-away', `The fleet is out of reach: ${reason}`)
}

export function membersUnknown ({ problem }: Presence): DeckError {
  return outOfReach(problem ?? 'not all members are known yet')
}

export function createNatsConnection (
  { options, member, onState = () => {}, load = loadClient, timers = globalThis, now = Date.now, random = Math.random }:
    {
      options: FleetOptions,
      member: string,
      onState?: (state: Presence) => void,
      load?: () => Promise<Client>,
      timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>,
      /** wall, ms */
      now?: () => number,
      random?: () => number
    }
) {
  const names = namesOf(options.name)
  let state: Presence = { isConnected: false, since: isoNow(), server: null, problem: 'not connected yet' }
  let open: Open | null = null
  let connection: NatsConnection | null = null
  const closing = new AbortController()
  /** Servers can name others of their cluster, which are added here. */
  const servers = new Set(options.servers)
  /** Servers that refused the last connection: the others are tried first. */
  const refusing: Set<string> = new Set()
  let beginning: Promise<void> = Promise.resolve()
  let renew = () => {}
  let renewedAt = -Infinity
  let callMs = CALL_WITHIN_MS
  /** What is set up with each connection, and how to end it. */
  const users: Map<Use, () => void> = new Map()
  /** Rejects the open calls: their answers are lost with the connection. */
  const waiting: Set<(error: Error) => void> = new Set()

  return {
    get state (): Presence {
      return state
    },

    start () {
      keepConnected()
    },

    /**
     * @param use once for each connection, and at once where there is one
     * @returns ends it
     */
    use (use: Use): () => void {
      users.set(use, () => {})
      if (open) startUse(use, open)
      return () => {
        users.get(use)?.()
        users.delete(use)
      }
    },

    /**
     * Does work whose calls have limits of their own. If the connection is lost, the work may have been done
     * nevertheless.
     */
    attempt: attemptWork,

    /** As `attempt` for one call, which is given up after `callMs`. */
    call: <T>(work: (open: Open) => Promise<T>): Promise<Outcome<T>> => attemptWork((opened) => inTime(work(opened))),

    /** The limit of one call. */
    get callMs () {
      return callMs
    },

    /** `revision`: 0: a new key */
    async write (bucket: 'members' | 'state', key: string, value: unknown, revision: number): Promise<Written> {
      if (!open) return { is: 'away', reason: String(state.problem) }
      try {
        const data = JSON.stringify(value)
        const kv = open[bucket]
        return { is: 'written',
          revision: await inTime(revision === 0 ? kv.create(key, data) : kv.update(key, data, revision, MAX_CALL_MS)) }
      } catch (error) {
        return isRefusal(error) ? { is: 'refused' } : reportAway(renewIfGone(error))
      }
    },

    /** Only members that listen at the moment get it. `subject`: below that of the fleet. */
    say (subject: string, value: unknown) {
      // The connection may just have been closed.
      attempt(() => open?.connection.publish(`${open.names.subject}.${subject}`, JSON.stringify(value)))
    },

    async close () {
      closing.abort()
      users.clear()
      await connection?.close().catch(() => {})
    }
  }

  /** It never lets the client reconnect: the client would stay with a server that hangs. */
  async function keepConnected () {
    const client = await load()
    for (let delayMs = FIRST_RETRY_MS; !closing.signal.aborted; delayMs = Math.min(2 * delayMs, MAX_RETRY_MS)) {
      try {
        const server = await nextServer()
        refusing.add(server)
        connection = await client.connect({ ...connectOptions(client, options), servers: [server],
          name: `clusterdeck ${member}`, reconnect: false, pingInterval: PING_MS, maxPingOut: 2,
          timeout: CONNECT_WITHIN_MS })
        refusing.clear()
        if (closing.signal.aborted) return await connection.close()
        const connectedAt = performance.now()
        for (const address of connection.info?.connect_urls ?? []) if (servers.size < MAX_SERVERS) servers.add(address)
        await followConnection(client, connection)
        // A server that closes the connection at once is not asked again at once.
        if (performance.now() - connectedAt >= STEADY_MS) delayMs = FIRST_RETRY_MS
      } catch (error) {
        if (!closing.signal.aborted) changeState({ isConnected: false, problem: reasonOf(error) })
      }
      // A random wait keeps members from connecting all at the same moment.
      if (!closing.signal.aborted) await waitFor(delayMs * (0.5 + random()))
    }
  }

  /** @throws {Error} none of them answers */
  async function nextServer (): Promise<string> {
    const others = [...servers].filter((each) => !refusing.has(each))
    if (others.length === 0) refusing.clear()
    try {
      return await probeServers(others.length === 0 ? [...servers] : others, { withinMs: CONNECT_WITHIN_MS,
        signal: closing.signal })
    } catch (error) {
      refusing.clear()
      throw error
    }
  }

  /** Resolves once the connection is closed for good. */
  async function followConnection (client: Client, made: NatsConnection) {
    // It has to listen first: earlier statuses are lost.
    const statuses = made.status()
    beginning = Promise.resolve()
    queueOpening(client, made)
    for await (const status of statuses) {
      if (closing.signal.aborted) return
      if (status.type === 'disconnect' || status.type === 'staleConnection') {
        loseConnection('the connection is lost')
      } else if (status.type === 'error') {
        changeState({ problem: reasonOf(status.error) })
      }
    }
    loseConnection(reasonOf(await made.closed() ?? 'the connection is closed'))
  }

  function loseConnection (problem: string) {
    open = null
    changeState({ isConnected: false, problem })
    for (const giveUp of waiting) giveUp(new Error(problem))
  }

  /** If somebody has removed a bucket, it is made again. Returns the same. */
  function renewIfGone (error: unknown): unknown {
    // A write to a missing bucket fails with this name.
    const isGone = isMissing(error) || (error instanceof Error && error.name === 'JetStreamNotEnabled')
    if (isGone && open && performance.now() - renewedAt >= RENEW_MS) {
      renewedAt = performance.now()
      renew()
    }
    return error
  }

  /** Two of them at the same time would make the same buckets. */
  function queueOpening (client: Client, made: NatsConnection): Promise<void> {
    renew = () => queueOpening(client, made)
    beginning = beginning.then(() => openWithRetries(client, made))
    return beginning
  }

  async function openWithRetries (client: Client, made: NatsConnection) {
    // A cluster without a leader does not answer everything, and on a slow network everything takes long.
    for (let patienceMs = OPEN_WITHIN_MS; !closing.signal.aborted && !made.isClosed();
      patienceMs = Math.min(2 * patienceMs, MAX_OPEN_MS))
    {
      try {
        const opening = openAll(client, made, names)
        const opened = await Promise.race([opening, rejectAfter(patienceMs)])
        if (made.isClosed()) return
        open = opened
        callMs = callTime(opened.roundTripMs)
        changeState({ isConnected: true, server: made.getServer(), problem: null })
        for (const use of users.keys()) if (open === opened) await startUse(use, opened)
        return
      } catch (error) {
        if (made.isClosed()) return
        open = null
        changeState({ isConnected: false, problem: reasonOf(error) })
        await waitFor(RETRY_MS)
      }
    }
  }

  function waitFor (ms: number): Promise<void> {
    return new Promise((resolve) => {
      timers.setTimeout(resolve, ms)?.unref?.()
    })
  }

  async function inTime<T> (answer: Promise<T>): Promise<T> {
    const asked = open
    const startedAt = performance.now()
    const value = await Promise.race([answer, rejectAfter(callMs).catch((error) => {
      asked?.connection.rtt().then((ms) => {
        callMs = callTime(ms)
      }, () => {})
      throw error
    })])
    callMs = callTime(performance.now() - startedAt)
    return value
  }

  async function rejectAfter (ms: number): Promise<never> {
    await waitFor(ms)
    throw new Error(`JetStream does not answer within ${ms / 1000} s`)
  }

  async function attemptWork<T> (work: (open: Open) => Promise<T>): Promise<Outcome<T>> {
    if (!open) return { is: 'away', reason: String(state.problem) }
    try {
      const value = await orLost(work(open))
      if (state.isConnected) changeState({ problem: null })
      return { is: 'done', value }
    } catch (error) {
      return reportAway(renewIfGone(error))
    }
  }

  /** @throws {Error} the connection was lost before it came */
  async function orLost<T> (answer: Promise<T>): Promise<T> {
    let giveUp: (error: Error) => void = () => {}
    const lost: Promise<never> = new Promise((_resolve, reject) => {
      giveUp = reject
    })
    waiting.add(giveUp)
    try {
      return await Promise.race([answer, lost])
    } finally {
      waiting.delete(giveUp)
    }
  }

  function reportAway (error: unknown): { is: 'away', reason: string } {
    changeState({ problem: reasonOf(error) })
    return { is: 'away', reason: reasonOf(error) }
  }

  async function startUse (use: Use, opened: Open) {
    try {
      users.get(use)?.()
      const stop = await use(opened) ?? (() => {})
      // If there is another connection by now, `users` already has how to end that one; or nobody uses it any more.
      if (open === opened && users.has(use)) users.set(use, stop)
      else stop()
    } catch (error) {
      changeState({ problem: reasonOf(error) })
    }
  }

  function changeState (next: Partial<Presence>) {
    const isSame = next.isConnected === undefined || next.isConnected === state.isConnected
    const before = state
    state = { ...state, ...next, since: isSame ? state.since : isoNow() }
    if (before.isConnected !== state.isConnected || before.problem !== state.problem) onState(state)
  }

  function isoNow () {
    return new Date(now()).toISOString()
  }
}

/** what it resolves with is called before the next time */
type Use = (open: Open) => Promise<(() => void) | void>
type Client = Awaited<ReturnType<typeof loadClient>>
export type Open = Awaited<ReturnType<typeof openAll>>

/** Loading takes 20 ms, so only a deck with a fleet does it. */
async function loadClient () {
  const [transport, kv, jetstream] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/kv'),
    import('@nats-io/jetstream')])
  return { ...transport, ...kv, ...jetstream }
}

function connectOptions (client: Client, { servers, token, credentials, tls }: FleetOptions) {
  const files = Object.fromEntries(
    [['caFile', tls.ca], ['certFile', tls.cert], ['keyFile', tls.key]].filter(([, file]) => file)
  )
  return {
    ...(token && { token }),
    ...(credentials && { authenticator: client.credsAuthenticator(() => readFileSync(credentials)) }),
    // The client alone would send its token in plain text to a server that has no TLS, also for an address with tls:.
    ...((Object.keys(files).length > 0 || servers.some((address) => address.startsWith('tls:'))) && { tls: files })
  }
}

function namesOf (fleet: string) {
  return { members: `clusterdeck_${fleet}_members`, state: `clusterdeck_${fleet}_state`,
    events: `clusterdeck_${fleet}_events`, subject: `clusterdeck.${fleet}` }
}

/** Makes what is missing. Reads go to the leader (`allow_direct: false`), so that they see every write. */
async function openAll (client: Client, connection: NatsConnection, names: ReturnType<typeof namesOf>) {
  const roundTripMs = await connection.rtt()
  const js = client.jetstream(connection, { timeout: MAX_CALL_MS })
  const manager = await client.jetstreamManager(connection, { timeout: MAX_CALL_MS })
  const kvm = new client.Kvm(js)
  const [members, state] = await Promise.all([
    makeBucket(names.members, { ttl: FORGET_AFTER_MS, history: 1 }),
    makeBucket(names.state, { history: 16 }),
    // If it fails, the outbox says why.
    makeReplicated({ connection, manager }, names.events, (replicas) => makeEventStream(manager, names, replicas))
      .catch(() => {})
  ])
  return { connection, js, manager, members, state, names, roundTripMs }

  function makeBucket (name: string, options: Partial<KvOptions>) {
    const make = (replicas: number) =>
      kvm.create(name, { ...options, replicas, allow_direct: false, timeout: MAX_CALL_MS })
    return makeReplicated({ connection, manager }, `KV_${name}`, make)
  }
}

function callTime (roundTripMs: number) {
  return Math.min(Math.max(CALL_WITHIN_MS, ROUND_TRIPS * roundTripMs), MAX_CALL_MS)
}

function isRefusal (error: unknown) {
  return natsCode(error) === WRONG_REVISION || /wrong last sequence/.test(errorText(error))
}

function reasonOf (error: unknown) {
  return errorText(error).slice(0, 200)
}
