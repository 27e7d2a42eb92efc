import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import path from 'node:path'
import { formatDuration } from '../../public/format.ts'
import { WITHOUT_WORKERS } from '../config/app-states.ts'
import { readJson, writeJson } from '../system/json-file.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { createAppFleet, LOOK_WITHIN_MS, type AppFleet, type AppPart, type Log } from './app-fleet.ts'
import { createBucketVersion } from './bucket-version.ts'
import { createFeed } from './feed.ts'
import { MAX_APPS, type AppStatus, type MemberStatus } from './member-status.ts'
import { createNatsConnection, type FleetOptions, type Presence } from './nats-connection.ts'
import { createPresence, type Host } from './presence.ts'
import { createRateLimiter } from './rate-limiter.ts'
import { createRpcClient } from './rpc-client.ts'
import { createRpcServer, type Serve } from './rpc-server.ts'
import { createSilenceLog } from './silence-log.ts'
import { createSilenceWatch, type Look, type Silence } from './silence-watch.ts'
import type { Accept } from './rpc-protocol.ts'
import type { NewEvent } from '../events/stream.ts'
import type { Past } from '../events/notices.ts'

/**
 * Makes this host a member of a fleet: it sees the other hosts with their apps, and its own apps take part in rollouts
 * over all of them. All of its apps share one connection and one status. A deck in the foreground is a host with one
 * app. Whatever fails here harms neither the apps nor the host.
 */
export type Options = FleetOptions & { member?: string, labels: Record<string, string>, accept: Accept }
export type HostsStatus = {
  name: string,
  /** the name of this host */
  member: string,
  nats: Presence,
  /** why the others do not see this host */
  problem: string | null,
  /** by name */
  members: Host[]
}
export type Fleet = {
  /** the name of this host in the fleet */
  member: string,
  /** as it was last seen */
  status: () => HostsStatus,
  /** of other hosts that do not report, by name */
  silences: () => Silence[],
  /** as it is now, or as it was last seen where NATS is out of reach */
  look: () => Promise<HostsStatus>,
  /** an app of this host that has joined */
  of: (app: string) => AppFleet | null,
  /** returns how the app leaves */
  join: (part: AppPart) => () => Promise<void>,
  /** removes a host that will not come back; throws not-found, not-possible, fleet-away */
  forget: (member: string, actor: string) => Promise<void>,
  /** an app of this host has changed */
  tellSoon: () => void,
  close: () => Promise<void>
}

/** A NATS server that comes and goes may not fill the history of this host. */
const TOLD = Object.freeze({ burst: 100, everyMs: 10_000 })
/** The status of an app that has none of its own: it does not run, or cannot be asked. */
const NO_FIGURES = Object.freeze({ release: null, code: null, workers: { ready: 0, desired: 0 },
  vitals: { requestsPerSecond: null, latencyP99Ms: null }, openCrashes: null, unwritten: null, rollout: null,
  turnOf: null, seen: { rollout: 0, revision: 0 } })

export function createFleet (
  { options, folder, only, apps, version, url, log, publish, history, serve, connect = createNatsConnection }: {
    options: Options,
    /** of the host: its id is kept there */
    folder: string,
    /** the only app, where there is never another one */
    only: string | null,
    /** of this host, also those that do not run */
    apps: () => { app: string, state: AppStatus['state'], url: string | null }[],
    version: string,
    url: string | null,
    log: Log,
    /** into the history of the host */
    publish: (event: NewEvent) => void,
    /** of the host; null: it is that of its only app */
    history: Past | null,
    /** the API of the apps of this host */
    serve: Serve,
    connect?: typeof createNatsConnection
  }
): Fleet {
  const file = path.join(folder, 'member.json')
  const kept = Object(readJson(file))
  const home = typeof kept.home === 'string' ? kept.home : randomUUID()
  const boot = randomUUID()
  const host = hostname()
  const member = options.member ?? nameOf(host, only)
  const joined: Map<string, { part: AppPart, fleet: ReturnType<typeof createAppFleet> }> = new Map()
  let nameProblem: string | null = null
  let wasConnected: boolean | null = null
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

  return { member, status: statusNow, async look () {
    await waitAtMost(presence.all(), LOOK_WITHIN_MS)
    return statusNow()
  }, silences: silenceWatch.list, of: (app) => joined.get(app)?.fleet ?? null, join (part) {
    const fleet = part.scope.run(() =>
      createAppFleet(part, { options, member, host, nats, presence, silences: silenceWatch.list, forget, feed,
        bucketVersion, asking, nameProblem: () => nameProblem })
    )
    if (nameProblem !== null) fleet.named(false)
    joined.set(part.app, { part, fleet })
    presence.tellSoon()
    return async () => {
      if (joined.get(part.app)?.fleet === fleet) joined.delete(part.app)
      presence.tellSoon()
      await fleet.close()
    }
  }, forget, tellSoon: presence.tellSoon, async close () {
    answering.close()
    silenceWatch.close()
    bucketVersion.close()
    await Promise.all([...[...joined.values()].map(({ fleet }) => fleet.close()), presence.close()])
    joined.clear()
    await nats.close()
  } }

  async function forget (name: string, actor: string) {
    const silentMs = await presence.forget(name)
    publish({ type: 'fleet.host-forgotten', actor,
      message: `${name} was forgotten, after ${formatDuration(silentMs)} of silence`,
      detail: { member: name, silentMs } })
  }

  function statusNow (): HostsStatus {
    return { name: options.name, member, nats: nats.state, problem: nameProblem ?? presence.problem,
      members: presence.list() }
  }

  function describeHost (): MemberStatus {
    return { member, home, boot, host, version, labels: options.labels, url, accept: options.accept,
      apps: apps().slice(0, MAX_APPS).map(describeApp) }
  }

  function describeApp ({ app, state, url }: ReturnType<typeof apps>[number]): AppStatus {
    const known = joined.get(app)
    try {
      if (known) return known.part.scope.run(known.fleet.describe)
    } catch (error) {
      log.warn({ err: error, app }, 'an app cannot say how it is')
    }
    return { app, state, ...NO_FIGURES, health: WITHOUT_WORKERS[state], url }
  }

  function onNatsState ({ isConnected, problem }: Presence) {
    if (!isConnected) callAll((fleet) => fleet.away())
    if (isConnected === wasConnected) return
    wasConnected = isConnected
    if (isConnected) tell('fleet.connected', `connected to the fleet ${options.name} as ${member}`)
    else tell('fleet.away', `this host is cut off from the fleet ${options.name}: ${problem}`)
  }

  function onLook (look: Look) {
    tellSilence?.(look)
    callAll((fleet) => fleet.looked(look))
  }

  function onName (problem: string | null) {
    nameProblem = problem
    callAll((fleet) => fleet.named(problem === null))
    answering.named(problem === null)
    if (problem) tell('fleet.name-taken', problem)
  }

  function callAll (work: (fleet: ReturnType<typeof createAppFleet>) => void) {
    for (const { part, fleet } of joined.values()) part.scope.call(() => work(fleet))
  }

  function tell (type: string, message: string) {
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

function nameOf (host: string, app: string | null) {
  const whole = [host.split('.')[0], ...(app === null ? [] : [app])].join('-')
  const name = whole.replaceAll(/[^\w-]/g, '-').replace(/^[^A-Za-z\d]+/, '').slice(0, 100)
  return name === '' ? 'host' : name
}
