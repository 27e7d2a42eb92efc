import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import path from 'node:path'
import { formatDuration } from '../../public/format.js'
import { WITHOUT_WORKERS } from '../config/app-states.js'
import { readJson, writeJson } from '../system/json-file.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { createAppFleet, LOOK_WITHIN_MS } from './app-fleet.js'
import { createBucketVersion } from './bucket-version.js'
import { createFeed } from './feed.js'
import { MAX_APPS } from './member-status.js'
import { createNatsConnection } from './nats-connection.js'
import { createPresence } from './presence.js'
import { createRateLimiter } from './rate-limiter.js'
import { createRpcClient } from './rpc-client.js'
import { createRpcServer } from './rpc-server.js'
import { createSilenceLog } from './silence-log.js'
import { createSilenceWatch } from './silence-watch.js'

/**
 * Makes this host a member of a fleet: it sees the other hosts with their apps, and its own apps take part in rollouts over all of
 * them. All of its apps share one connection and one status. A deck in the foreground is a host with one app. Whatever fails here
 * harms neither the apps nor the host.
 * @typedef {import('./app-fleet.js').AppFleet} AppFleet
 * @typedef {import('./app-fleet.js').AppPart} AppPart
 * @typedef {import('./member-status.js').AppStatus} AppStatus
 * @typedef {import('./presence.js').Host} Host
 * @typedef {import('./nats-connection.js').FleetOptions & { member?: string, labels: Record<string, string>, accept: import('./rpc-protocol.js').Accept }} Options
 *
 * @typedef {object} HostsStatus
 * @property {string} name
 * @property {string} member  the name of this host
 * @property {import('./nats-connection.js').Presence} nats
 * @property {string | null} problem  why the others do not see this host
 * @property {Host[]} members  by name
 *
 * @typedef {object} Fleet
 * @property {string} member  the name of this host in the fleet
 * @property {() => HostsStatus} status  as it was last seen
 * @property {() => import('./silence-watch.js').Silence[]} silences  of other hosts that do not report, by name
 * @property {() => Promise<HostsStatus>} look  as it is now, or as it was last seen where NATS is out of reach
 * @property {(app: string) => AppFleet | null} of  an app of this host that has joined
 * @property {(part: AppPart) => () => Promise<void>} join  returns how the app leaves
 * @property {(member: string, actor: string) => Promise<void>} forget  removes a host that will not come back; throws not-found, not-possible, fleet-away
 * @property {() => void} tellSoon  an app of this host has changed
 * @property {() => Promise<void>} close
 */

/** A NATS server that comes and goes may not fill the history of this host. */
const TOLD = Object.freeze({ burst: 100, everyMs: 10_000 })
/** The status of an app that has none of its own: it does not run, or cannot be asked. */
const NO_FIGURES = Object.freeze({
  release: null,
  code: null,
  workers: { ready: 0, desired: 0 },
  vitals: { requestsPerSecond: null, latencyP99Ms: null },
  openCrashes: null,
  unwritten: null,
  rollout: null,
  turnOf: null,
  seen: { rollout: 0, revision: 0 }
})

/**
 * @param {object} parts
 * @param {Options} parts.options
 * @param {string} parts.folder  of the host: its id is kept there
 * @param {string | null} parts.only  the only app, where there is never another one
 * @param {() => { app: string, state: AppStatus['state'], url: string | null }[]} parts.apps  of this host, also those that do not run
 * @param {string} parts.version
 * @param {string | null} parts.url
 * @param {import('./app-fleet.js').Log} parts.log
 * @param {(event: import('../events/stream.js').NewEvent) => void} parts.publish  into the history of the host
 * @param {import('../events/notices.js').Past | null} parts.history  of the host; null: it is that of its only app
 * @param {import('./rpc-server.js').Serve} parts.serve  the API of the apps of this host
 * @param {typeof createNatsConnection} [parts.connect]
 * @returns {Fleet}
 */
export function createFleet ({ options, folder, only, apps, version, url, log, publish, history, serve, connect = createNatsConnection }) {
  const file = path.join(folder, 'member.json')
  const kept = Object(readJson(file))
  const home = typeof kept.home === 'string' ? kept.home : randomUUID()
  const boot = randomUUID()
  const host = hostname()
  const member = options.member ?? nameOf(host, only)
  /** @type {Map<string, { part: AppPart, fleet: ReturnType<typeof createAppFleet> }>} */
  const joined = new Map()
  /** @type {string | null} */
  let nameProblem = null
  /** @type {boolean | null} */
  let wasConnected = null
  const waitMs = createRateLimiter({ ...TOLD, now: () => performance.now() })

  const nats = connect({ options, member, onState: onNatsState })
  const presence = createPresence({ nats, describe: describeHost, onName })
  const tellSilence = history && createSilenceLog({ app: null, member, history, publish })
  const silenceWatch = createSilenceWatch({ nats, presence, onLook })
  const feed = createFeed({ nats })
  const bucketVersion = createBucketVersion({ nats })
  const asking = createRpcClient({ nats, presence, member, serve })
  const answering = createRpcServer({ nats, member, home, accept: options.accept, serve })
  // The id has to be on the disk before others see it, so that the next master is the same member.
  if (home !== kept.home) storeHome()
  nats.start()

  return {
    member,

    status: statusNow,

    async look () {
      await waitAtMost(presence.all(), LOOK_WITHIN_MS)
      return statusNow()
    },

    silences: silenceWatch.list,

    of: (app) => joined.get(app)?.fleet ?? null,

    join (part) {
      const fleet = part.scope.run(() => createAppFleet(part, { options, member, host, nats, presence, silences: silenceWatch.list, forget, feed, bucketVersion, asking, nameProblem: () => nameProblem }))
      if (nameProblem !== null) fleet.named(false)
      joined.set(part.app, { part, fleet })
      presence.tellSoon()
      return async () => {
        if (joined.get(part.app)?.fleet === fleet) joined.delete(part.app)
        presence.tellSoon()
        await fleet.close()
      }
    },

    forget,

    tellSoon: presence.tellSoon,

    async close () {
      answering.close()
      silenceWatch.close()
      bucketVersion.close()
      await Promise.all([...[...joined.values()].map(({ fleet }) => fleet.close()), presence.close()])
      joined.clear()
      await nats.close()
    }
  }

  /** @param {string} name @param {string} actor */
  async function forget (name, actor) {
    const silentMs = await presence.forget(name)
    publish({ type: 'fleet.host-forgotten', actor, message: `${name} was forgotten, after ${formatDuration(silentMs)} of silence`, detail: { member: name, silentMs } })
  }

  /** @returns {HostsStatus} */
  function statusNow () {
    return { name: options.name, member, nats: nats.state, problem: nameProblem ?? presence.problem, members: presence.list() }
  }

  /** @returns {import('./member-status.js').MemberStatus} */
  function describeHost () {
    return { member, home, boot, host, version, labels: options.labels, url, accept: options.accept, apps: apps().slice(0, MAX_APPS).map(describeApp) }
  }

  /** @param {ReturnType<typeof apps>[number]} own @returns {AppStatus} */
  function describeApp ({ app, state, url }) {
    const known = joined.get(app)
    try {
      if (known) return known.part.scope.run(known.fleet.describe)
    } catch (error) {
      log.warn({ err: error, app }, 'an app cannot say how it is')
    }
    return { app, state, ...NO_FIGURES, health: WITHOUT_WORKERS[state], url }
  }

  /** @param {import('./nats-connection.js').Presence} state */
  function onNatsState ({ isConnected, problem }) {
    if (!isConnected) callAll((fleet) => fleet.away())
    if (isConnected === wasConnected) return
    wasConnected = isConnected
    if (isConnected) tell('fleet.connected', `connected to the fleet ${options.name} as ${member}`)
    else tell('fleet.away', `this host is cut off from the fleet ${options.name}: ${problem}`)
  }

  /** @param {import('./silence-watch.js').Look} look */
  function onLook (look) {
    tellSilence?.(look)
    callAll((fleet) => fleet.looked(look))
  }

  /** @param {string | null} problem */
  function onName (problem) {
    nameProblem = problem
    callAll((fleet) => fleet.named(problem === null))
    answering.named(problem === null)
    if (problem) tell('fleet.name-taken', problem)
  }

  /** @param {(fleet: ReturnType<typeof createAppFleet>) => void} work */
  function callAll (work) {
    for (const { part, fleet } of joined.values()) part.scope.call(() => work(fleet))
  }

  /** @param {string} type @param {string} message */
  function tell (type, message) {
    if (waitMs() === 0) publish({ type, actor: 'system', message })
  }

  function storeHome () {
    try {
      writeJson(file, { home })
    } catch (error) {
      log.warn({ err: error }, 'cannot write member.json')
    }
  }
}

/** @param {string} host @param {string | null} app */
function nameOf (host, app) {
  const whole = [host.split('.')[0], ...(app === null ? [] : [app])].join('-')
  const name = whole.replaceAll(/[^\w-]/g, '-').replace(/^[^A-Za-z\d]+/, '').slice(0, 100)
  return name === '' ? 'host' : name
}
