import { readFileSync } from 'node:fs'
import { DeckError, errorText } from '../errors.js'
import { makeEventStream } from './event-stream.js'
import { probeServers } from './server-probe.js'
import { isMissing, makeReplicated, natsCode } from './streams.js'

/**
 * Connects a fleet to NATS JetStream: two buckets, a stream, questions and answers. It tries to connect for ever. While NATS is
 * out of reach its calls answer `away` at once and throw nothing.
 * @typedef {ReturnType<typeof createNatsConnection>} Connection
 * @typedef {{ servers: readonly string[], name: string, token?: string, credentials?: string, tls: { ca?: string, cert?: string, key?: string } }} FleetOptions
 * @typedef {{ isConnected: boolean, since: string, server: string | null, problem: string | null }} Presence
 *   `since`: when `isConnected` changed; `problem`: why NATS is out of reach, or what failed last
 * @typedef {{ is: 'written', revision: number } | { is: 'refused' } | { is: 'away', reason: string }} Written
 * @typedef {import('@nats-io/transport-node').NatsConnection} NatsConnection
 */
/** @template T @typedef {{ is: 'done', value: T } | { is: 'away', reason: string }} Outcome */

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

/**
 * @template T @param {Outcome<T>} outcome @returns {T} @throws {DeckError} fleet-away
 */
export function valueOrThrow (outcome) {
  if (outcome.is === 'away') throw outOfReach(outcome.reason)
  return outcome.value
}

/** @param {string} reason @returns {DeckError} */
export function outOfReach (reason) {
  return new DeckError('fleet-away', `The fleet is out of reach: ${reason}`)
}

/** @param {Presence} state @returns {DeckError} */
export function membersUnknown ({ problem }) {
  return outOfReach(problem ?? 'not all members are known yet')
}

/**
 * @param {object} parts
 * @param {FleetOptions} parts.options
 * @param {string} parts.member
 * @param {(state: Presence) => void} [parts.onState]
 * @param {() => Promise<Client>} [parts.load]
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 * @param {() => number} [parts.now]  wall, ms
 * @param {() => number} [parts.random]
 */
export function createNatsConnection ({ options, member, onState = () => {}, load = loadClient, timers = globalThis, now = Date.now, random = Math.random }) {
  const names = namesOf(options.name)
  /** @type {Presence} */
  let state = { isConnected: false, since: isoNow(), server: null, problem: 'not connected yet' }
  /** @type {Open | null} */
  let open = null
  /** @type {NatsConnection | null} */
  let connection = null
  const closing = new AbortController()
  /** Servers can name others of their cluster, which are added here. */
  const servers = new Set(options.servers)
  /** Servers that refused the last connection: the others are tried first. @type {Set<string>} */
  const refusing = new Set()
  /** @type {Promise<void>} */
  let beginning = Promise.resolve()
  let renew = () => {}
  let renewedAt = -Infinity
  let callMs = CALL_WITHIN_MS
  /** What is set up with each connection, and how to end it. @type {Map<Use, () => void>} */
  const users = new Map()
  /** Rejects the open calls: their answers are lost with the connection. @type {Set<(error: Error) => void>} */
  const waiting = new Set()

  return {
    /** @returns {Presence} */
    get state () { return state },

    start () { keepConnected() },

    /** @param {Use} use  once for each connection, and at once where there is one @returns {() => void} ends it */
    use (use) {
      users.set(use, () => {})
      if (open) startUse(use, open)
      return () => {
        users.get(use)?.()
        users.delete(use)
      }
    },

    /**
     * Does work whose calls have limits of their own. If the connection is lost, the work may have been done nevertheless.
     * @template T @param {(open: Open) => Promise<T>} work @returns {Promise<Outcome<T>>}
     */
    attempt: attemptWork,

    /** As `attempt` for one call, which is given up after `callMs`. @template T @param {(open: Open) => Promise<T>} work @returns {Promise<Outcome<T>>} */
    call: (work) => attemptWork((opened) => inTime(work(opened))),

    /** The limit of one call. */
    get callMs () { return callMs },

    /** @param {'members' | 'state'} bucket @param {string} key @param {unknown} value @param {number} revision  0: a new key @returns {Promise<Written>} */
    async write (bucket, key, value, revision) {
      if (!open) return { is: 'away', reason: String(state.problem) }
      try {
        const data = JSON.stringify(value)
        const kv = open[bucket]
        return { is: 'written', revision: await inTime(revision === 0 ? kv.create(key, data) : kv.update(key, data, revision, MAX_CALL_MS)) }
      } catch (error) {
        return isRefusal(error) ? { is: 'refused' } : reportAway(renewIfGone(error))
      }
    },

    /** Only members that listen at the moment get it. @param {string} subject  below that of the fleet @param {unknown} value */
    say (subject, value) {
      try {
        open?.connection.publish(`${open.names.subject}.${subject}`, JSON.stringify(value))
      } catch {
        // The connection has just been closed.
      }
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
        connection = await client.connect({
          ...connectOptions(client, options),
          servers: [server],
          name: `clusterdeck ${member}`,
          reconnect: false,
          pingInterval: PING_MS,
          maxPingOut: 2,
          timeout: CONNECT_WITHIN_MS
        })
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

  /** @returns {Promise<string>} @throws {Error} none of them answers */
  async function nextServer () {
    const others = [...servers].filter((each) => !refusing.has(each))
    if (others.length === 0) refusing.clear()
    try {
      return await probeServers(others.length === 0 ? [...servers] : others, { withinMs: CONNECT_WITHIN_MS, signal: closing.signal })
    } catch (error) {
      refusing.clear()
      throw error
    }
  }

  /** Resolves once the connection is closed for good. @param {Client} client @param {NatsConnection} made */
  async function followConnection (client, made) {
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

  /** @param {string} problem */
  function loseConnection (problem) {
    open = null
    changeState({ isConnected: false, problem })
    for (const giveUp of waiting) giveUp(new Error(problem))
  }

  /** If somebody has removed a bucket, it is made again. @param {unknown} error @returns {unknown} the same */
  function renewIfGone (error) {
    // A write to a missing bucket fails with this name.
    const isGone = isMissing(error) || (error instanceof Error && error.name === 'JetStreamNotEnabled')
    if (isGone && open && performance.now() - renewedAt >= RENEW_MS) {
      renewedAt = performance.now()
      renew()
    }
    return error
  }

  /** Two of them at the same time would make the same buckets. @param {Client} client @param {NatsConnection} made @returns {Promise<void>} */
  function queueOpening (client, made) {
    renew = () => queueOpening(client, made)
    beginning = beginning.then(() => openWithRetries(client, made))
    return beginning
  }

  /** @param {Client} client @param {NatsConnection} made */
  async function openWithRetries (client, made) {
    // A cluster without a leader does not answer everything, and on a slow network everything takes long.
    for (let patienceMs = OPEN_WITHIN_MS; !closing.signal.aborted && !made.isClosed(); patienceMs = Math.min(2 * patienceMs, MAX_OPEN_MS)) {
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

  /** @param {number} ms @returns {Promise<void>} */
  function waitFor (ms) {
    return new Promise((resolve) => { timers.setTimeout(resolve, ms)?.unref?.() })
  }

  /** @template T @param {Promise<T>} answer @returns {Promise<T>} */
  async function inTime (answer) {
    const asked = open
    const startedAt = performance.now()
    const value = await Promise.race([answer, rejectAfter(callMs).catch((error) => {
      asked?.connection.rtt().then((ms) => { callMs = callTime(ms) }, () => {})
      throw error
    })])
    callMs = callTime(performance.now() - startedAt)
    return value
  }

  /** @param {number} ms @returns {Promise<never>} */
  async function rejectAfter (ms) {
    await waitFor(ms)
    throw new Error(`JetStream does not answer within ${ms / 1000} s`)
  }

  /** @template T @param {(open: Open) => Promise<T>} work @returns {Promise<Outcome<T>>} */
  async function attemptWork (work) {
    if (!open) return { is: 'away', reason: String(state.problem) }
    try {
      const value = await orLost(work(open))
      if (state.isConnected) changeState({ problem: null })
      return { is: 'done', value }
    } catch (error) {
      return reportAway(renewIfGone(error))
    }
  }

  /** @template T @param {Promise<T>} answer @returns {Promise<T>} @throws {Error} the connection was lost before it came */
  async function orLost (answer) {
    /** @type {(error: Error) => void} */
    let giveUp = () => {}
    /** @type {Promise<never>} */
    const lost = new Promise((_resolve, reject) => { giveUp = reject })
    waiting.add(giveUp)
    try {
      return await Promise.race([answer, lost])
    } finally {
      waiting.delete(giveUp)
    }
  }

  /** @param {unknown} error @returns {{ is: 'away', reason: string }} */
  function reportAway (error) {
    changeState({ problem: reasonOf(error) })
    return { is: 'away', reason: reasonOf(error) }
  }

  /** @param {Use} use @param {Open} opened */
  async function startUse (use, opened) {
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

  /** @param {Partial<Presence>} next */
  function changeState (next) {
    const isSame = next.isConnected === undefined || next.isConnected === state.isConnected
    const before = state
    state = { ...state, ...next, since: isSame ? state.since : isoNow() }
    if (before.isConnected !== state.isConnected || before.problem !== state.problem) onState(state)
  }

  function isoNow () {
    return new Date(now()).toISOString()
  }
}

/** @typedef {(open: Open) => Promise<(() => void) | void>} Use  what it resolves with is called before the next time */
/** @typedef {Awaited<ReturnType<typeof loadClient>>} Client */
/** @typedef {Awaited<ReturnType<typeof openAll>>} Open */

/** Loading takes 20 ms, so only a deck with a fleet does it. */
async function loadClient () {
  const [transport, kv, jetstream] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/kv'), import('@nats-io/jetstream')])
  return { ...transport, ...kv, ...jetstream }
}

/** @param {Client} client @param {FleetOptions} options */
function connectOptions (client, { servers, token, credentials, tls }) {
  const files = Object.fromEntries([['caFile', tls.ca], ['certFile', tls.cert], ['keyFile', tls.key]].filter(([, file]) => file))
  return {
    ...(token && { token }),
    ...(credentials && { authenticator: client.credsAuthenticator(() => readFileSync(credentials)) }),
    // The client alone would send its token in plain text to a server that has no TLS, also for an address with tls:.
    ...((Object.keys(files).length > 0 || servers.some((address) => address.startsWith('tls:'))) && { tls: files })
  }
}

/** @param {string} fleet */
function namesOf (fleet) {
  return {
    members: `clusterdeck_${fleet}_members`,
    state: `clusterdeck_${fleet}_state`,
    events: `clusterdeck_${fleet}_events`,
    subject: `clusterdeck.${fleet}`
  }
}

/**
 * Makes what is missing. Reads go to the leader (`allow_direct: false`), so that they see every write.
 * @param {Client} client @param {import('@nats-io/transport-node').NatsConnection} connection @param {ReturnType<typeof namesOf>} names
 */
async function openAll (client, connection, names) {
  const roundTripMs = await connection.rtt()
  const js = client.jetstream(connection, { timeout: MAX_CALL_MS })
  const manager = await client.jetstreamManager(connection, { timeout: MAX_CALL_MS })
  const kvm = new client.Kvm(js)
  const [members, state] = await Promise.all([
    makeBucket(names.members, { ttl: FORGET_AFTER_MS, history: 1 }),
    makeBucket(names.state, { history: 16 }),
    // If it fails, the outbox says why.
    makeReplicated({ connection, manager }, names.events, (replicas) => makeEventStream(manager, names, replicas)).catch(() => {})
  ])
  return { connection, js, manager, members, state, names, roundTripMs }

  /** @param {string} name @param {Partial<import('@nats-io/kv').KvOptions>} options */
  function makeBucket (name, options) {
    const make = (/** @type {number} */ replicas) => kvm.create(name, { ...options, replicas, allow_direct: false, timeout: MAX_CALL_MS })
    return makeReplicated({ connection, manager }, `KV_${name}`, make)
  }
}

/** @param {number} roundTripMs */
function callTime (roundTripMs) {
  return Math.min(Math.max(CALL_WITHIN_MS, ROUND_TRIPS * roundTripMs), MAX_CALL_MS)
}

/** @param {unknown} error */
function isRefusal (error) {
  return natsCode(error) === WRONG_REVISION || /wrong last sequence/.test(errorText(error))
}

/** @param {unknown} error */
function reasonOf (error) {
  return errorText(error).slice(0, 200)
}
