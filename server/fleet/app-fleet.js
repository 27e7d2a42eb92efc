import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { formatDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { count, countOpen } from '../health.js'
import { readJson, writeJson } from '../system/json-file.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { createRateLimiter } from './rate-limiter.js'
import { createMemberRuntime } from './member-runtime.js'
import { createFleetCrashes } from './crashes.js'
import { createFleetLogs } from './logs.js'
import { membersUnknown, valueOrThrow } from './nats-connection.js'
import { createDeckAdapter, resultOf } from './deck-adapter.js'
import { createRolloutStore } from './rollout-store.js'
import { NO_MEMORY } from './member.js'
import { createOutbox } from './outbox.js'
import { batchesOf, matchesLabels } from './plan.js'
import { allReleases, createPackages } from './packages.js'
import { membersOf } from './presence.js'
import { startRollout, giveUp, MAX_ID, steerRollout } from './rollout.js'
import { createSilenceLog } from './silence-log.js'
import { STATES } from './states.js'
import { createStore, notPushed } from './store.js'

/**
 * An app of this host in its fleet: the members that have it too, and its rollouts over all of them, host by host. Whatever fails
 * here harms neither the app nor others.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {import('./presence.js').Member} Member
 * @typedef {import('./rpc-client.js').Person} Person
 * @typedef {Omit<import('./rpc-server.js').Order, 'app'>} Order
 *
 * @typedef {object} FleetStatus
 * @property {string} name
 * @property {string} app
 * @property {string} member
 * @property {import('./nats-connection.js').Presence} nats
 * @property {string | null} problem  why the others do not see this host
 * @property {Member[]} members  those that have the app
 * @property {FleetRollout | null} rollout  of the app
 * @property {import('./outbox.js').OutboxState} outbox  what of the app's history the fleet has
 *
 * @typedef {object} AppFleet
 * @property {string} app
 * @property {string} member  the name of this host in the fleet
 * @property {() => FleetStatus} status  as it was last seen
 * @property {() => Promise<FleetStatus>} look  as it is now, or as it was last seen where NATS is out of reach
 * @property {() => SilentMember[]} silences  of other hosts that have the app and do not report, by name
 * @property {(member: string, actor: string) => Promise<void>} forget  removes a host that will not come back, with all of its apps; throws not-found, not-possible, fleet-away
 * @property {() => Promise<FleetRollout[]>} past  rollouts before the present one, newest first
 * @property {(wanted: Wanted) => Promise<Plan>} plan  what `begin` would do now
 * @property {(wanted: Wanted, actor: string) => Promise<FleetRollout>} begin  throws rollout-running, not-found, forbidden, invalid-body, fleet-away
 * @property {(order: 'pause' | 'resume' | 'abort', actor: string) => Promise<FleetRollout>} steer  throws not-found, rollout-ended, rollout-state, fleet-away
 * @property {(listener: () => void) => () => void} onRollout  calls the listener at each change of the rollout; returns how to end that
 * @property {() => Promise<import('./store.js').Pushed[]>} pushed  what can be deployed by its digest, newest first; throws fleet-away
 * @property {(digest: string, archive: AsyncIterable<Buffer>, actor: string) => Promise<import('./store.js').Pushed & { isNew: boolean }>} push
 *   takes a tar archive, by gzip; throws fleet-away, invalid-body, payload-too-large
 * @property {(member: string, order: Order, person: Person, how?: { withinMs?: number }) => Promise<import('./rpc-protocol.js').Answer>} ask
 *   calls the API of the app on one member for somebody who is signed in here
 * @property {(member: string, order: Omit<Order, 'headers'> & { headers?: Order['headers'] }, person: Person, how?: { withinMs?: number }) => Promise<any>} obtain  the same, where a refusal is an error
 * @property {ReturnType<typeof createFleetCrashes>['list']} crashes  of all members
 * @property {ReturnType<typeof createFleetCrashes>['settle']} settleCrash  on all members
 * @property {ReturnType<typeof createFleetLogs>['list']} logs  lines of all members; throws not-found
 * @property {(wanted: Omit<import('./feed.js').Wanted, 'app'>) => Promise<import('./feed.js').Page>} history  events of all members, newest first; throws fleet-away
 *
 * @typedef {Member & { heardAt: number }} SilentMember  as it was last heard, and when: monotonic, ms
 *
 * @typedef {{ batches: string[][], leftOut: { member: string, reason: string }[], refusals: string[] }} Plan
 *
 * @typedef {object} Wanted
 * @property {import('./rollout.js').Kind} kind
 * @property {string} [path]
 * @property {string} [digest]
 * @property {string} [release]
 * @property {string} [note]
 * @property {string | number} [batch]
 * @property {number} [pauseMs]
 * @property {number} [deadlineMs]
 * @property {string} [order]
 * @property {string} [canary]
 * @property {'hold' | 'rollback'} [onFailure]
 * @property {Record<string, string>} [only]
 *
 * In which part of the process something runs: what is thrown there is a fault of the app, and none of the host.
 * @typedef {object} Scope
 * @property {<T>(work: () => T) => T} run
 * @property {(work: () => unknown) => void} call
 * @property {<A extends any[]>(handler: (...args: A) => unknown) => (...args: A) => void} bind
 *
 * What a fleet has to know of an app.
 * @typedef {object} AppPart
 * @property {string} app  its name
 * @property {import('./deck-adapter.js').OwnDeck} deck
 * @property {() => import('./member-status.js').AppStatus['state']} state
 * @property {string} folder  its data folder
 * @property {string} [root]  releases.root
 * @property {string | null} url  of its admin page, for people
 * @property {Log} log
 * @property {Scope} scope
 *
 * @typedef {{ warn: (fields: object, text: string) => void }} Log
 *
 * What the host lends each of its apps.
 * @typedef {object} Lent
 * @property {import('./fleet.js').Options} options
 * @property {string} member
 * @property {string} host
 * @property {import('./nats-connection.js').Connection} nats
 * @property {import('./presence.js').Presence} presence
 * @property {() => import('./silence-watch.js').Silence[]} silences
 * @property {AppFleet['forget']} forget
 * @property {ReturnType<typeof import('./feed.js').createFeed>} feed
 * @property {import('./bucket-version.js').BucketVersion} bucketVersion
 * @property {ReturnType<typeof import('./rpc-client.js').createRpcClient>} asking
 * @property {() => string | null} nameProblem  another member has the name of this host
 */

const DEADLINE_MS = 60 * 60_000
/** A page does not wait longer than this for NATS. */
export const LOOK_WITHIN_MS = 1000
/** Events that other members cause may not fill the history of this app: a rollout causes only a few. */
const TOLD = Object.freeze({ burst: 100, everyMs: 10_000 })
const COMMIT_CHARS = 10
const MAX_VERSION_CHARS = 100
const MAX_PROBLEM_CHARS = 500
const ENDS = new Set(['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back'])

/**
 * @param {AppPart} part @param {Lent} lent
 * @returns {AppFleet & { describe: () => import('./member-status.js').AppStatus, away: () => void, looked: (look: import('./silence-watch.js').Look) => void, named: (isOwn: boolean) => void, close: () => Promise<void> }}
 *   `describe`: what this host tells others of the app; `away`: NATS is out of reach; `looked`: it is known who is silent; `named`: whether the name of this host is its own
 */
export function createAppFleet ({ app, deck, state, folder, root, url, log, scope }, { options, member, host, nats, presence, silences, forget, feed, bucketVersion, asking, nameProblem }) {
  const file = path.join(folder, 'fleet.json')
  /** @type {Set<() => void>} */
  const listeners = new Set()
  const waitMs = createRateLimiter({ ...TOLD, now: () => performance.now() })

  const rolloutStore = createRolloutStore({ nats, app, scope, bucketVersion })
  const store = createStore({ nats, fleet: options.name, app })
  const packages = createPackages({
    root,
    member,
    app,
    store,
    releases: () => allReleases(deck.releases),
    onError: (error) => log.warn({ err: error }, 'cannot remove old pushes from releases.root')
  })
  const runtime = createMemberRuntime({
    rolloutStore,
    member,
    boot: randomUUID(),
    memory: restoreMemory(Object(readJson(file)), deck),
    remember: storeMemory,
    deckAdapter: createDeckAdapter(deck, options.accept, packages),
    tell: publishEvent,
    onWritten: tellMoments,
    onDocument
  })
  const outbox = createOutbox({ nats, history: deck.history, events: deck.events, teller: () => ({ member, host, app }) })
  const parts = { obtain, members: async () => (await allMembers()).members }
  const crashes = createFleetCrashes(parts)
  const logs = createFleetLogs(parts)
  const tellSilence = createSilenceLog({ app, member, history: deck.history, publish: deck.events.publish })
  const unsubscribe = deck.events.subscribe(onEvent)
  packages.sweep()

  return {
    app,

    member,

    status: statusNow,

    async look () {
      await waitAtMost(Promise.all([presence.all(), runtime.newest()]), LOOK_WITHIN_MS)
      return statusNow()
    },

    silences: () => silences().flatMap(({ host, heardAt }) => membersOf([host], app).map((each) => ({ ...each, heardAt }))),

    forget,

    past: rolloutStore.past,

    async history (wanted) {
      return valueOrThrow(await feed.read({ ...wanted, app }))
    },

    async plan (wanted) {
      const { members, isComplete } = await allMembers()
      const { there, absent } = chooseMembers(members, wanted.only)
      const document = runtime.document
      const refusals = [nameProblem(), isComplete ? null : membersUnknown(nats.state).message]
      if (document && !STATES[document.state].done) refusals.push(`Rollout ${document.id} of the fleet is ${document.state}. Only one can run at a time`)
      /** @type {string[][]} */
      let batches = []
      try {
        checkAccepting(there, wanted.only)
        batches = batchesOf(wanted, there)
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        refusals.push(error.message)
      }
      return { batches, leftOut: absent.map(leftOutOf), refusals: refusals.filter((each) => each !== null) }
    },

    async begin (wanted, actor) {
      const problem = nameProblem()
      if (problem !== null) throw new DeckError('not-possible', problem)
      if (wanted.digest !== undefined && !await store.has(wanted.digest)) throw notPushed(wanted.digest)
      const present = await allMembers()
      if (!present.isComplete) throw membersUnknown(nats.state)
      const { there, absent } = chooseMembers(present.members, wanted.only)
      checkAccepting(there, wanted.only)
      const { kind, path, digest, release, pauseMs = 0, deadlineMs = DEADLINE_MS, onFailure = 'hold', note = null } = wanted
      const plan = { app, kind, source: { path, digest, release }, batches: batchesOf(wanted, there), pauseMs, deadlineMs, onFailure, absent: absent.map((each) => each.member), actor, note }
      const seen = Math.max(runtime.seen.rollout, ...present.members.map((each) => each.seen.rollout))
      return changeRollout((document) => {
        const id = nextId(Math.max(seen, document?.id ?? 0))
        const next = startRollout(document, { ...plan, uid: randomUUID(), id, at: isoNow() }, silentIn(document, present))
        checkForgotten(document, present.members)
        return next
      })
    },

    async steer (order, actor) {
      const present = order === 'pause' ? { members: [], isComplete: false } : await allMembers()
      return changeRollout((document) => {
        if (!document) throw new DeckError('not-found', 'The fleet has had no rollout yet')
        checkForgotten(document, present.members)
        const by = { at: isoNow(), actor }
        // Any other command waits for a silent member until the deadline, which holds the rollout.
        const isGivingUp = order === 'resume' || document.state === 'held'
        return giveUp(steerRollout(document, order, by), isGivingUp ? silentIn(document, present) : [], by)
      })
    },

    onRollout (listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    pushed: store.list,

    async push (digest, archive, actor) {
      const current = (await runtime.newest())?.source.digest
      return store.put(digest, archive, { actor, named: current === undefined ? [] : [current] })
    },

    ask: (name, order, person, how) => asking.ask(name, { ...order, app }, person, how),
    obtain,

    crashes: crashes.list,

    settleCrash: crashes.settle,

    logs: logs.list,

    describe,

    away: runtime.away,

    looked: tellSilence,

    named: runtime.named,

    async close () {
      unsubscribe()
      runtime.close()
      packages.close()
      store.close()
      await outbox.close()
    }
  }

  /** @param {string} name @param {Parameters<AppFleet['obtain']>[1]} order @param {Person} person @param {{ withinMs?: number }} [how] */
  async function obtain (name, order, person, how) {
    return await asking.obtain(name, { ...order, app }, person, how)
  }

  async function allMembers () {
    const { members, isComplete } = await presence.all()
    return { members: membersOf(members, app), isComplete }
  }

  /** @param {(document: FleetRollout | null) => FleetRollout} to */
  async function changeRollout (to) {
    const { before, document, revision } = await rolloutStore.change(to)
    tellMoments(document, before)
    runtime.see(document, revision)
    return document
  }

  /** @returns {FleetStatus} */
  function statusNow () {
    const [members, rollout] = [membersOf(presence.list(), app), runtime.document]
    return { name: options.name, app, member, nats: reachOf(nats.state), problem: nameProblem() ?? presence.problem, members, rollout, outbox: outbox.state }
  }

  /**
   * Until the rollout has been read the fleet counts as out of reach: else it would look as if there were none.
   * @param {import('./nats-connection.js').Presence} state @returns {import('./nats-connection.js').Presence}
   */
  function reachOf (state) {
    return state.isConnected && !runtime.isKnown ? { ...state, isConnected: false, problem: state.problem ?? 'its rollout has not been read yet' } : state
  }

  /** @returns {import('./member-status.js').AppStatus} */
  function describe () {
    const snapshot = deck.snapshot()
    const { release, readyWorkers, desiredWorkers, rollout, workers } = snapshot
    const health = deck.health(snapshot)
    const notices = deck.notices.list().length
    return {
      app,
      state: state(),
      release: release?.id ?? null,
      code: codeOf(release),
      workers: { ready: readyWorkers, desired: desiredWorkers },
      health: { tone: health.tone, text: notices === 0 ? health.text : `${health.text}, ${count(notices, 'notice')}` },
      vitals: { requestsPerSecond: figureOf(workers, 'requestsPerSecond', sumOf), latencyP99Ms: figureOf(workers, 'latencyP99Ms', highestOf) },
      openCrashes: countOpen(deck.crashes),
      unwritten: unwrittenOf(snapshot),
      rollout: rollout && {
        id: rollout.id,
        kind: rollout.kind,
        state: rollout.state,
        replaced: rollout.progress.replaced,
        total: rollout.progress.total
      },
      turnOf: runtime.task?.fleet ?? null,
      seen: runtime.seen,
      url
    }
  }

  function onDocument () {
    presence.tellSoon()
    for (const listener of listeners) listener()
  }

  /**
   * Only the member that wrote a change publishes its events; turns have events of their own deck.
   * @param {FleetRollout} document @param {FleetRollout | null} before
   */
  function tellMoments ({ id, kind, timeline }, before) {
    for (const moment of timeline) {
      const { type, actor, message } = moment
      if (before?.timeline.includes(moment) || type.startsWith('turn-')) continue
      publishEvent(`fleet.rollout-${type}`, `rollout ${id} of the fleet (${kind})${message ? `: ${message}` : ''}`, actor ?? 'system')
    }
  }

  /** @param {import('../events/stream.js').DeckEvent} event */
  function onEvent ({ type, rollout, release, actor, message, detail }) {
    if (type === 'rollout.succeeded') packages.clean()
    if (type.startsWith('rollout.') || type.startsWith('worker.') || type.startsWith('crash.')) presence.tellSoon()
    if (type === 'rollout.started' && actor === 'guard') {
      runtime.undone({ release: typeof detail?.from === 'string' ? detail.from : null, reason: message ?? 'the guard rolled back' })
    }
    const { task } = runtime
    if (task && rollout !== null && rollout === task.rollout && ENDS.has(type)) runtime.ended(resultOf({ type, release, message }, task))
  }

  /** @param {import('./member.js').Memory} memory */
  function storeMemory (memory) {
    try {
      writeJson(file, { memory })
    } catch (error) {
      log.warn({ err: error }, 'cannot write fleet.json')
    }
  }

  /** @param {string} type @param {string} message @param {string} [actor] */
  function publishEvent (type, message, actor = 'system') {
    if (actor !== 'system' || waitMs() === 0) deck.events.publish({ type, actor, message })
  }
}

function isoNow () {
  return new Date().toISOString()
}

/** A stopped app has nobody who could take its turn. @param {Member} member */
function canTakePart ({ isSilent, state }) {
  return !isSilent && (state === 'running' || state === 'starting')
}

/** @param {Member[]} members @param {Record<string, string>} [only]  labels that they have, see matchesLabels() */
function chooseMembers (members, only) {
  const matching = members.filter(({ labels }) => matchesLabels(labels, only))
  return { there: matching.filter(canTakePart), absent: matching.filter((each) => !canTakePart(each)) }
}

/** @param {Member} member */
function leftOutOf ({ member, isSilent, ageMs, state }) {
  return { member, reason: isSilent ? `silent for ${formatDuration(ageMs)}` : `the app is ${state} there` }
}

/** @param {Record<string, string>} [labels] */
function labelsText (labels = {}) {
  return Object.entries(labels).map((label) => label.join('=')).join(', ')
}

/**
 * @param {Member[]} members @param {Record<string, string>} [only]
 * @throws {DeckError} not-found: there are none; forbidden: one of them does not take part in rollouts
 */
function checkAccepting (members, only) {
  if (members.length === 0) throw new DeckError('not-found', `only: expected labels of an online member, received ${labelsText(only)}`)
  const closed = members.filter(({ accept }) => accept !== 'operate')
  if (closed.length === 0) return
  throw new DeckError('forbidden', `${closed.map(({ member }) => member).join(', ')}: expected fleet.accept "operate", received "${closed[0].accept}"`)
}

/** @param {number} highest  that anybody has seen @returns {number} @throws {DeckError} not-possible */
function nextId (highest) {
  if (highest < MAX_ID) return highest + 1
  const mend = 'Someone with write access to the fleet wrote it. Stop the app on all members, remove fleet.json from its data folders, and start it'
  throw new DeckError('not-possible', `A member has seen rollout ${highest} of the fleet, the highest possible number. ${mend}`)
}

/**
 * A member that is still in a turn of a rollout that NATS has lost must finish it before another rollout begins.
 * @param {FleetRollout | null} document @param {Member[]} members @throws {DeckError} rollout-running
 */
function checkForgotten (document, members) {
  const busy = members.filter(({ isSilent, turnOf }) => !isSilent && turnOf !== null && turnOf !== document?.uid).map((each) => each.member)
  if (busy.length > 0) throw new DeckError('rollout-running', `Still in a turn of a rollout that NATS has lost: ${busy.join(', ')}`)
}

/**
 * A member that has left for good, or no longer has the app, is in no list, so it counts as silent once the list is complete.
 * @param {FleetRollout | null} document @param {{ members: Member[], isComplete: boolean }} present @returns {string[]}
 */
function silentIn (document, { members, isComplete }) {
  const isSilentOf = new Map(members.map((each) => [each.member, !canTakePart(each)]))
  return Object.keys(document?.turns ?? {}).filter((member) => isSilentOf.get(member) ?? isComplete)
}

/**
 * If the last master ended in its turn, the history knows how its own rollout ended.
 * @param {{ memory?: Partial<import('./member.js').Memory> }} file  fleet.json, empty if it is missing
 * @param {Pick<import('./deck-adapter.js').OwnDeck, 'history'>} deck
 * @returns {import('./member.js').Memory}
 */
function restoreMemory (file, { history }) {
  const memory = { ...NO_MEMORY, ...file.memory }
  const { task } = memory
  const own = task && task.result === null && task.rollout !== null ? history.rollout(task.rollout) : null
  if (task && own?.done) {
    task.result = resultOf({ type: `rollout.${own.state}`, release: own.to, message: own.reason }, { way: task.way, isAborted: false })
  }
  return memory
}

/** @param {import('./deck-adapter.js').OwnStatus['release'] | null} release @returns {import('./member-status.js').AppStatus['code']} */
function codeOf (release) {
  const { package: itsPackage, git } = release ?? {}
  return {
    version: itsPackage?.version?.slice(0, MAX_VERSION_CHARS) ?? null,
    commit: git ? `${git.commit.slice(0, COMMIT_CHARS)}${git.isDirty ? '+' : ''}` : null
  }
}

/** @param {import('./deck-adapter.js').OwnStatus} snapshot @returns {import('./member-status.js').AppStatus['unwritten']} */
function unwrittenOf ({ history: { problem, since } }) {
  return problem === null ? null : { problem: problem.slice(0, MAX_PROBLEM_CHARS), since }
}

/**
 * @param {import('./deck-adapter.js').OwnStatus['workers']} workers @param {'requestsPerSecond' | 'latencyP99Ms'} name @param {(values: number[]) => number} fold
 * @returns {number | null} null: no worker has reported it
 */
function figureOf (workers, name, fold) {
  const known = workers.map(({ vitals }) => vitals?.[name] ?? NaN).filter(Number.isFinite)
  return known.length === 0 ? null : fold(known)
}

/** @param {number[]} values */
function sumOf (values) {
  return values.reduce((total, value) => total + value, 0)
}

/** @param {number[]} values */
function highestOf (values) {
  return Math.max(...values)
}
