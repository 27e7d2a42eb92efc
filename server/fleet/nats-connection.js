import { readFileSync } from 'node:fs'
import { DeckError } from '../errors.js'
import { makeEventStream } from './event-stream.js'
import { probeServers } from './server-probe.js'
import { isMissing, makeReplicated } from './streams.js'

/**
 * NATS JetStream, as a fleet needs it: two buckets, a stream, questions and answers. It connects for ever and waits for nobody;
 * whatever cannot be done at the moment is answered with `away`, and throws nothing.
 * @typedef {ReturnType<typeof createNatsConnection>} Connection
 * @typedef {{ servers: readonly string[], name: string, token?: string, credentials?: string, tls: { ca?: string, cert?: string, key?: string } }} FleetOptions
 * @typedef {{ isConnected: boolean, since: string, server: string | null, problem: string | null }} Presence  `since`: as it is now; `problem`: why it is away, or what went wrong last
 * @typedef {{ is: 'written', revision: number } | { is: 'refused' } | { is: 'away', reason: string }} Written
 */

/** How long a member counts as there after its last word. */
export const SILENT_AFTER_MS = 15_000
/** After which one that is silent is forgotten. */
const FORGET_AFTER_MS = 7 * 24 * 60 * 60_000
/** An answer that a change of leaders has lost is waited for no longer; where each message takes seconds, as many times there and back. */
const CALL_WITHIN_MS = 3000
const ROUND_TRIPS = 4
const MAX_CALL_MS = 60_000
/** Of one server, after which the next one is tried: enough where each message takes five seconds. */
const CONNECT_WITHIN_MS = 20_000
const RETRY_MS = 1000
/** After a loss: another server may be there. */
const FIRST_RETRY_MS = 250
const STEADY_MS = 5000
const RENEW_MS = 5000
const MAX_SERVERS = 32
const PING_MS = 10_000
const MAX_RETRY_MS = 2000
const OPEN_WITHIN_MS = 3000
const MAX_OPEN_MS = 120_000
/** Of 10071: wrong last sequence. */
const WRONG_REVISION = 10071

/**
 * What could not be done, for somebody who waits for it.
 * @template T @param {{ is: 'done', value: T } | { is: 'away', reason: string }} outcome @returns {T} @throws {DeckError} fleet-away
 */
export function valueOrThrow (outcome) {
  if (outcome.is === 'away') throw outOfReach(outcome.reason)
  return outcome.value
}

/** @param {string} reason @returns {DeckError} */
export function outOfReach (reason) {
  return new DeckError('fleet-away', `The fleet is out of reach: ${reason}`)
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
  /** @type {import('@nats-io/transport-node').NatsConnection | null} */
  let connection = null
  const closing = new AbortController()
  /** Also those of its cluster that a server has told of. */
  const servers = new Set(options.servers)
  /** Which greet, and then do not let it in: the others have their turn first. @type {Set<string>} */
  const refusing = new Set()
  /** @type {Promise<void>} */
  let beginning = Promise.resolve()
  let renew = () => {}
  let renewedAt = -Infinity
  let callMs = CALL_WITHIN_MS
  /** What is set up anew with each connection, and how that ends. @type {Map<Use, () => void>} */
  const users = new Map()
  /** Those who wait for an answer: with the connection it is lost. @type {Set<(error: Error) => void>} */
  const waiting = new Set()

  return {
    /** As it is. @returns {Presence} */
    get state () { return state },

    start () { keepConnected() },

    /** @param {Use} use  once for each connection, and at once where there is one */
    use (use) {
      users.set(use, () => {})
      if (open) startUse(use, open)
    },

    /**
     * Of calls that have limits of their own. One whose connection is lost may have been done all the same, and goes on by itself.
     * @template T @param {(open: Open) => Promise<T>} work @returns {Promise<{ is: 'done', value: T } | { is: 'away', reason: string }>}
     */
    attempt: attemptWork,

    /** The same, of one call, which is given up after `callMs`. @template T @param {(open: Open) => Promise<T>} work @returns {ReturnType<typeof attemptWork<T>>} */
    call: (work) => attemptWork((opened) => inTime(work(opened))),

    /** How long one call is waited for at the moment. */
    get callMs () { return callMs },

    /** @param {string} bucket @param {string} key @param {unknown} value @param {number} revision  0: it is not there yet @returns {Promise<Written>} */
    async write (bucket, key, value, revision) {
      if (!open) return { is: 'away', reason: String(state.problem) }
      try {
        const data = JSON.stringify(value)
        const kv = bucket === 'members' ? open.members : open.state
        return { is: 'written', revision: await inTime(revision === 0 ? kv.create(key, data) : kv.update(key, data, revision, MAX_CALL_MS)) }
      } catch (/** @type {any} */ error) {
        return isRefusal(error) ? { is: 'refused' } : reportAway(renewIfGone(error))
      }
    },

    /** To whoever listens at the moment; lost where nobody can be reached. @param {string} subject  below that of the fleet @param {unknown} value */
    say (subject, value) {
      try {
        open?.connection.publish(`${open.names.subject}.${subject}`, JSON.stringify(value))
      } catch {
        // The connection has been closed in between.
      }
    },

    async close () {
      closing.abort()
      users.clear()
      await connection?.close().catch(() => {})
    }
  }

  /** Each connection is a new one: the client would go on with a server that hangs. */
  async function keepConnected () {
    const client = await load()
    for (let delayMs = FIRST_RETRY_MS; !closing.signal.aborted; delayMs = Math.min(2 * delayMs, MAX_RETRY_MS)) {
      try {
        const server = await nextServer()
        refusing.add(server)
        connection = await client.connect({ ...connectOptions(client, options), servers: [server], name: `clusterdeck ${member}`, reconnect: false, pingInterval: PING_MS, maxPingOut: 2, timeout: CONNECT_WITHIN_MS })
        refusing.clear()
        if (closing.signal.aborted) return await connection.close()
        const connectedAt = performance.now()
        for (const address of connection.info?.connect_urls ?? []) if (servers.size < MAX_SERVERS) servers.add(address)
        await followConnection(client, connection)
        // Whoever is thrown out as soon as it is in does not come back at once.
        if (performance.now() - connectedAt >= STEADY_MS) delayMs = FIRST_RETRY_MS
      } catch (error) {
        if (!closing.signal.aborted) changeState({ isConnected: false, problem: reasonOf(error) })
      }
      // Not all members at the same moment.
      if (!closing.signal.aborted) await waitFor(delayMs * (0.5 + random()))
    }
  }

  /** @returns {Promise<string>} @throws {Error} none is there */
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

  /** Until it is closed for good. @param {Client} client @param {import('@nats-io/transport-node').NatsConnection} made */
  async function followConnection (client, made) {
    // From the start on: what is told before somebody listens is told to nobody.
    const statuses = made.status()
    beginning = Promise.resolve()
    queueOpening(client, made)
    for await (const status of statuses) {
      if (closing.signal.aborted) return
      if (status.type === 'disconnect' || status.type === 'staleConnection') {
        loseConnection('the connection is lost')
      } else if (status.type === 'error') {
        changeState({ problem: reasonOf(/** @type {any} */ (status).error) })
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

  /** A bucket that somebody has removed is made again. @param {any} error @returns {any} the same */
  function renewIfGone (error) {
    // Who writes to what is not there hears that nobody listens.
    const isGone = isMissing(error) || error?.name === 'JetStreamNotEnabled'
    if (isGone && open && performance.now() - renewedAt >= RENEW_MS) {
      renewedAt = performance.now()
      renew()
    }
    return error
  }

  /** One after the other. @param {Client} client @param {import('@nats-io/transport-node').NatsConnection} made @returns {Promise<void>} */
  function queueOpening (client, made) {
    renew = () => queueOpening(client, made)
    beginning = beginning.then(() => openWithRetries(client, made))
    return beginning
  }

  /** @param {Client} client @param {import('@nats-io/transport-node').NatsConnection} made */
  async function openWithRetries (client, made) {
    // A cluster that has no leader yet answers nothing to some questions; a slow way takes long for all of them.
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

  /** @param {number} ms */
  async function waitFor (ms) {
    await new Promise((resolve) => timers.setTimeout(/** @type {any} */ (resolve), ms)?.unref?.())
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

  /** @template T @param {(open: Open) => Promise<T>} work @returns {Promise<{ is: 'done', value: T } | { is: 'away', reason: string }>} */
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
    const lost = new Promise((/** @type {(value: never) => void} */ _resolve, reject) => { giveUp = reject })
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
      // Meanwhile there may be another connection, whose end is not to be forgotten for this one's.
      if (open === opened) users.set(use, stop)
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

/** @typedef {(open: Open) => Promise<(() => void) | void>} Use `() => void`: called before the next time */
/** @typedef {Awaited<ReturnType<typeof loadClient>>} Client */
/** @typedef {Awaited<ReturnType<typeof openAll>>} Open */

/** 20 ms, and only where there is a fleet. */
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
    // The client itself takes tls: for a wish, and would tell a server that has none its token in plain text.
    ...((Object.keys(files).length > 0 || servers.some((address) => address.startsWith('tls:'))) && { tls: files })
  }
}

/** @param {string} fleet */
function namesOf (fleet) {
  return { members: `clusterdeck_${fleet}_members`, state: `clusterdeck_${fleet}_state`, events: `clusterdeck_${fleet}_events`, subject: `clusterdeck.${fleet}` }
}

/**
 * Makes what is not there yet. Reads go to whoever leads, so that what was written is seen.
 * @param {Client} client @param {import('@nats-io/transport-node').NatsConnection} connection @param {ReturnType<typeof namesOf>} names
 */
async function openAll (client, connection, names) {
  const roundTripMs = await connection.rtt()
  const js = client.jetstream(connection, { timeout: MAX_CALL_MS })
  const manager = await client.jetstreamManager(connection, { timeout: MAX_CALL_MS })
  const kvm = new client.Kvm(js)
  const bucket = (/** @type {string} */ name, /** @type {object} */ options) => makeReplicated({ connection, manager }, `KV_${name}`, (replicas) => kvm.create(name, { ...options, replicas, allow_direct: false, timeout: MAX_CALL_MS }))
  const [members, state] = await Promise.all([
    bucket(names.members, { ttl: FORGET_AFTER_MS, history: 1 }),
    bucket(names.state, { history: 16 }),
    // Where it cannot be had, whoever would write to it says why.
    makeReplicated({ connection, manager }, names.events, (replicas) => makeEventStream(manager, names, replicas)).catch(() => {})
  ])
  return { connection, js, manager, members, state, names, roundTripMs }
}

/** @param {number} roundTripMs */
function callTime (roundTripMs) {
  return Math.min(Math.max(CALL_WITHIN_MS, ROUND_TRIPS * roundTripMs), MAX_CALL_MS)
}

/** @param {any} error */
function isRefusal (error) {
  return error?.code === WRONG_REVISION || error?.api_error?.err_code === WRONG_REVISION || /wrong last sequence/.test(String(error?.message))
}

/** @param {any} error */
function reasonOf (error) {
  return String(error?.message ?? error).slice(0, 200)
}
