import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { count, countOpen } from '../health.js'
import { readJson, writeJson } from '../system/json-file.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { createRateLimiter } from './rate-limiter.js'
import { createRpcServer } from './rpc-server.js'
import { createRpcClient } from './rpc-client.js'
import { createMemberRuntime } from './member-runtime.js'
import { createFleetCrashes } from './crashes.js'
import { createNatsConnection, valueOrThrow, outOfReach } from './nats-connection.js'
import { createFeed } from './feed.js'
import { createDeckAdapter, resultOf } from './deck-adapter.js'
import { createRolloutStore } from './rollout-store.js'
import { NO_MEMORY } from './member.js'
import { createOutbox } from './outbox.js'
import { batchesOf, matchesLabels } from './plan.js'
import { allReleases, createPackages } from './packages.js'
import { createPresence } from './presence.js'
import { startRollout, giveUp, MAX_ID, steerRollout } from './rollout.js'
import { createStore } from './store.js'

/**
 * This deck among others, on other machines: who is there, and rollouts over all of them, host by host. All of it may fail
 * without the app or its deck being any the worse for it.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {{ name: string, member: string, nats: import('./nats-connection.js').Presence, problem: string | null, members: import('./presence.js').Member[], rollout: FleetRollout | null, outbox: import('./outbox.js').OutboxState }} FleetStatus `problem`: why this deck is not seen by the others; `outbox`: of the history of this deck
 * @typedef {object} Fleet
 * @property {string} member  what this deck is called there
 * @property {() => FleetStatus} status  as it is known at the moment
 * @property {() => Promise<FleetStatus>} look  as it is, or as it was last known where NATS is away
 * @property {() => Promise<FleetRollout[]>} past  rollouts before the present one, newest first
 * @property {(wanted: Wanted, actor: string) => Promise<FleetRollout>} begin  throws rollout-running, not-found, forbidden, invalid-body, fleet-away
 * @property {(order: 'pause' | 'resume' | 'abort', actor: string) => Promise<FleetRollout>} steer  throws not-found, rollout-ended, rollout-state, fleet-away
 * @property {(listener: () => void) => () => void} onRollout  tells of each change of the rollout that this deck sees, until what it answers with is called
 * @property {() => Promise<import('./store.js').Pushed[]>} pushed  what can be deployed by its digest, newest first; throws fleet-away
 * @property {(digest: string, archive: AsyncIterable<Buffer>, actor: string) => Promise<import('./store.js').Pushed & { isNew: boolean }>} push  a tar archive, by gzip; throws fleet-away, invalid-body, payload-too-large
 * @property {ReturnType<typeof createRpcClient>['ask']} ask  one member, for somebody who is signed in here
 * @property {ReturnType<typeof createRpcClient>['obtain']} obtain  of one member, for somebody who is signed in here
 * @property {ReturnType<typeof createFleetCrashes>['list']} crashes  of all members
 * @property {ReturnType<typeof createFleetCrashes>['settle']} settleCrash  on all members
 * @property {(wanted: import('./feed.js').Wanted) => Promise<import('./feed.js').Page>} history  what has happened, newest first; throws fleet-away
 * @property {() => Promise<void>} close
 *
 * @typedef {{ kind: import('./rollout.js').Kind, path?: string, digest?: string, release?: string, note?: string, batch?: string | number, pauseMs?: number, deadlineMs?: number, order?: string, canary?: string, onFailure?: 'hold' | 'rollback', only?: Record<string, string> }} Wanted
 */

const DEADLINE_MS = 60 * 60_000
/** For somebody who wants to see what there is. */
const LOOK_WITHIN_MS = 1000
/** What happens by itself, told: a rollout tells of a few. */
const TOLD = Object.freeze({ burst: 100, everyMs: 10_000 })
const COMMIT_CHARS = 10
const MAX_VERSION_CHARS = 100
const DONE = /^rollout\.(succeeded|failed|rolled-back)$/

/**
 * @param {object} parts
 * @param {import('./nats-connection.js').FleetOptions & { member?: string, labels: Record<string, string>, accept: 'nothing' | 'read' | 'operate' }} parts.options
 * @param {string} parts.folder  of the data
 * @param {import('./deck-adapter.js').OwnDeck} parts.deck
 * @param {string} [parts.root]  releases.root
 * @param {string} parts.version
 * @param {string | null} parts.url
 * @param {{ warn: (fields: object, text: string) => void }} parts.log
 * @param {import('./rpc-server.js').Serve} parts.serve  this deck's own API
 * @param {typeof createNatsConnection} [parts.connect]
 * @returns {Fleet}
 */
export function createFleet ({ options, folder, deck, root, version, url, log, serve, connect = createNatsConnection }) {
  const file = path.join(folder, 'fleet.json')
  const kept = restoreMemory(readJson(file), deck)
  const boot = randomUUID()
  const host = hostname()
  const member = options.member ?? nameOf(host, deck.snapshot().app.name)
  /** @type {string | null} */
  let nameProblem = null
  /** @type {boolean | null} */
  let wasConnected = null
  /** @type {Set<() => void>} */
  const listeners = new Set()
  const waitMs = createRateLimiter({ ...TOLD, now: () => performance.now() })

  const nats = connect({ options, member, onState: onEngine })
  const rolloutStore = createRolloutStore({ nats })
  const store = createStore({ nats, fleet: options.name })
  const packages = createPackages({ root, member, store, releases: () => allReleases(deck.releases), onError: (error) => log.warn({ err: error }, 'what was pushed to the fleet could not be removed') })
  const presence = createPresence({ nats, describe: describeDeck, onName })
  const runtime = createMemberRuntime({ rolloutStore, member, boot, memory: kept.memory, remember: storeMemory, deckAdapter: createDeckAdapter(deck, options.accept, packages), tell: publishEvent, onWritten: tellMoments, onDocument })
  const outbox = createOutbox({ nats, history: deck.history, events: deck.events, teller: () => ({ member, host, app: deck.snapshot().app.name }) })
  const feed = createFeed({ nats })
  const asking = createRpcClient({ nats, presence, member, serve })
  const crashes = createFleetCrashes({ obtain: asking.obtain, members: async () => (await presence.all()).members })
  const answering = createRpcServer({ nats, member, home: kept.home, accept: options.accept, serve })
  const unsubscribe = deck.events.subscribe(onEvent)
  // Before anybody hears of it: the next master is the same member.
  if (kept.isNew) storeMemory(kept.memory)
  nats.start()
  packages.sweep()

  return {
    member,

    status: () => statusOf(presence.list(), runtime.document),

    async look () {
      await waitAtMost(Promise.all([presence.all(), runtime.newest()]), LOOK_WITHIN_MS)
      return statusOf(presence.list(), runtime.document)
    },

    past: rolloutStore.past,

    async history (wanted) {
      return valueOrThrow(await feed.read(wanted))
    },

    async begin (wanted, actor) {
      if (nameProblem !== null) throw new DeckError('not-possible', nameProblem)
      if (wanted.digest !== undefined && !await store.has(wanted.digest)) throw new DeckError('not-found', `${wanted.digest} is not there: it was never pushed, or was removed since`)
      const { members, isComplete } = await presence.all()
      if (!isComplete) throw outOfReach(nats.state.problem ?? 'not all of its members have been heard of yet')
      const there = members.filter(({ isSilent, labels }) => !isSilent && matchesLabels(labels, wanted.only))
      if (there.length === 0) throw new DeckError('not-found', `only: expected labels of a member that is there, received ${labelsText(wanted.only)}`)
      const closed = there.filter(({ accept }) => accept !== 'operate')
      if (closed.length > 0) throw new DeckError('forbidden', `${closed.map((each) => each.member).join(', ')}: expected fleet.accept "operate", received "${closed[0].accept}"`)
      const absent = members.filter(({ isSilent, labels }) => isSilent && matchesLabels(labels, wanted.only)).map((each) => each.member)
      const { kind, path, digest, release, pauseMs = 0, deadlineMs = DEADLINE_MS, onFailure = 'hold', note = null } = wanted
      const plan = { kind, source: { path, digest, release }, batches: batchesOf(wanted, there), pauseMs, deadlineMs, onFailure, absent, actor, note }
      const seen = Math.max(runtime.seen.rollout, ...members.map(({ seen }) => seen.rollout))
      return changeRollout((document) => {
        const id = 1 + Math.max(seen, document?.id ?? 0)
        if (id > MAX_ID) throw new DeckError('not-possible', `A member has seen rollout ${id - 1} of the fleet, and none may be higher: whoever wrote that number can write to the fleet. Stop the members, remove fleet.json from their data folders, and start them`)
        const next = startRollout(document, { ...plan, uid: randomUUID(), id, at: isoNow() }, silentIn(document, { members, isComplete }))
        checkForgotten(document, members)
        return next
      })
    },

    async steer (order, actor) {
      const present = order === 'pause' ? { members: [], isComplete: false } : await presence.all()
      return changeRollout((document) => {
        if (!document) throw new DeckError('not-found', 'The fleet has had no rollout yet')
        checkForgotten(document, present.members)
        const by = { at: isoNow(), actor }
        // Whoever is silent for a moment is waited for, up to the deadline, which holds the rollout.
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

    ask: asking.ask,
    obtain: asking.obtain,

    crashes: crashes.list,

    settleCrash: crashes.settle,

    async close () {
      unsubscribe()
      answering.close()
      runtime.close()
      packages.close()
      await Promise.all([outbox.close(), presence.close()])
      await nats.close()
    }
  }

  /** @param {(document: FleetRollout | null) => FleetRollout} to */
  async function changeRollout (to) {
    const { before, document, revision } = await rolloutStore.change(to)
    tellMoments(document, before)
    runtime.see(document, revision)
    return document
  }

  /** @param {import('./presence.js').Member[]} members @param {FleetRollout | null} rollout @returns {FleetStatus} */
  function statusOf (members, rollout) {
    return { name: options.name, member, nats: reachOf(nats.state), problem: nameProblem ?? presence.problem, members, rollout, outbox: outbox.state }
  }

  /** Connected, and not heard of the rollout yet: nobody is to believe that there is none. @param {import('./nats-connection.js').Presence} state @returns {import('./nats-connection.js').Presence} */
  function reachOf (state) {
    return state.isConnected && !runtime.isKnown ? { ...state, isConnected: false, problem: state.problem ?? 'its rollout has not been read yet' } : state
  }

  /** @returns {import('./member-status.js').Word} */
  function describeDeck () {
    const snapshot = deck.snapshot()
    const { app, release, readyWorkers, desiredWorkers, rollout, workers } = snapshot
    const health = deck.health(snapshot)
    const notices = deck.notices.list().length
    return {
      member,
      home: kept.home,
      boot,
      host,
      app: app.name,
      version,
      labels: options.labels,
      release: release?.id ?? null,
      code: codeOf(release),
      workers: { ready: readyWorkers, desired: desiredWorkers },
      health: { tone: health.tone, text: notices === 0 ? health.text : `${health.text}, ${count(notices, 'notice')}` },
      vitals: { requestsPerSecond: figureOf(workers, 'requestsPerSecond', sumOf), latencyP99Ms: figureOf(workers, 'latencyP99Ms', highestOf) },
      openCrashes: countOpen(deck.crashes),
      rollout: rollout && { id: rollout.id, kind: rollout.kind, state: rollout.state, replaced: rollout.progress.replaced, total: rollout.progress.total },
      turnOf: runtime.task?.fleet ?? null,
      url,
      accept: options.accept,
      seen: runtime.seen
    }
  }

  function onDocument () {
    presence.tellSoon()
    for (const listener of listeners) listener()
  }

  /** @param {import('./nats-connection.js').Presence} state */
  function onEngine ({ isConnected, problem }) {
    if (!isConnected) runtime.away()
    if (isConnected === wasConnected) return
    wasConnected = isConnected
    publishEvent(isConnected ? 'fleet.connected' : 'fleet.away', isConnected ? `connected to the fleet ${options.name} as ${member}` : `the fleet ${options.name} is out of reach: ${problem}`)
  }

  /** @param {string | null} problem */
  function onName (problem) {
    nameProblem = problem
    runtime.named(problem === null)
    answering.named(problem === null)
    if (problem) publishEvent('fleet.name-taken', problem)
  }

  /** What this member has made of the rollout, where that is not about one turn alone. @param {FleetRollout} document @param {FleetRollout | null} before */
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
    if (type === 'rollout.started' && actor === 'guard') runtime.undone({ release: /** @type {{ from?: string } | null} */ (detail)?.from ?? null, reason: message ?? 'it went back by itself' })
    const { task } = runtime
    if (task && rollout !== null && rollout === task.rollout && DONE.test(type)) runtime.ended(resultOf({ type, release, message }, task))
  }

  /** @param {import('./member.js').Memory} memory */
  function storeMemory (memory) {
    try {
      writeJson(file, { home: kept.home, memory })
    } catch (error) {
      log.warn({ err: error }, 'what this deck has seen of its fleet could not be kept')
    }
  }

  /** What others can bring about is no way to fill the history of this deck. @param {string} type @param {string} message @param {string} [actor] */
  function publishEvent (type, message, actor = 'system') {
    if (actor !== 'system' || waitMs() === 0) deck.events.publish({ type, actor, message })
  }
}

function isoNow () {
  return new Date().toISOString()
}

/** @param {Record<string, string>} [labels] */
function labelsText (labels = {}) {
  return Object.entries(labels).map((label) => label.join('=')).join(', ')
}

/**
 * Nobody is to begin beside whoever is in a turn that no document tells of.
 * @param {FleetRollout | null} document @param {import('./presence.js').Member[]} members @throws {DeckError} rollout-running
 */
function checkForgotten (document, members) {
  const busy = members.filter(({ isSilent, turnOf }) => !isSilent && turnOf !== null && turnOf !== document?.uid).map((each) => each.member)
  if (busy.length > 0) throw new DeckError('rollout-running', `In a turn of a rollout that NATS has forgotten: ${busy.join(', ')}`)
}

/**
 * Those that do not say anything: also who has left for good is in no list any more.
 * @param {FleetRollout | null} document @param {Awaited<ReturnType<import('./presence.js').Presence['all']>>} present @returns {string[]}
 */
function silentIn (document, { members, isComplete }) {
  const isSilentOf = new Map(members.map(({ member, isSilent }) => [member, isSilent]))
  return Object.keys(document?.turns ?? {}).filter((member) => isSilentOf.get(member) ?? isComplete)
}

/**
 * What the file of this data folder says; where a master ended in the turn, what has become of its own rollout is in its history.
 * @param {any} file @param {Pick<import('./deck-adapter.js').OwnDeck, 'history'>} deck
 * @returns {{ home: string, isNew: boolean, memory: import('./member.js').Memory }} `isNew`: the file does not say its home yet
 */
function restoreMemory (file, { history }) {
  const memory = { ...NO_MEMORY, ...file?.memory }
  const { task } = memory
  const own = task && task.result === null && task.rollout !== null ? history.rollout(task.rollout) : null
  if (task && own?.done) task.result = resultOf({ type: `rollout.${own.state}`, release: own.to, message: own.reason }, { way: task.way, isAborted: false })
  return { home: file?.home ?? randomUUID(), isNew: !file?.home, memory }
}

/** @param {import('./deck-adapter.js').OwnStatus['release'] | null} release @returns {import('./member-status.js').Word['code']} */
function codeOf (release) {
  const { package: itsPackage, git } = release ?? {}
  return { version: itsPackage?.version?.slice(0, MAX_VERSION_CHARS) ?? null, commit: git ? `${git.commit.slice(0, COMMIT_CHARS)}${git.isDirty ? '+' : ''}` : null }
}

/**
 * @param {import('./deck-adapter.js').OwnStatus['workers']} workers @param {'requestsPerSecond' | 'latencyP99Ms'} name @param {(values: number[]) => number} fold
 * @returns {number | null} null: nobody says
 */
function figureOf (workers, name, fold) {
  const known = workers.map(({ vitals }) => vitals?.[name]).filter((value) => Number.isFinite(value))
  return known.length === 0 ? null : fold(/** @type {number[]} */ (known))
}

/** @param {number[]} values */
function sumOf (values) {
  return values.reduce((total, value) => total + value, 0)
}

/** @param {number[]} values */
function highestOf (values) {
  return Math.max(...values)
}

/** @param {string} host @param {string} app */
function nameOf (host, app) {
  const name = `${host.split('.')[0]}-${app}`.replaceAll(/[^\w-]/g, '-').replace(/^[^A-Za-z\d]+/, '').slice(0, 100)
  return name === '' ? 'deck' : name
}
