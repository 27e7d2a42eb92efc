import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { formatDuration } from '../../public/format.ts'
import { BLAMED_CAUSES, isOneOf } from '../causes.ts'
import { attempt, DeckError } from '../errors.ts'
import { readJson, writeJson } from '../system/json-file.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { createRateLimiter } from './rate-limiter.ts'
import { createMemberRuntime } from './member-runtime.ts'
import { membersUnknown, valueOrThrow, type Connection, type Presence } from './nats-connection.ts'
import { createDeckAdapter, describeDeck, resultOf, type OwnDeck } from './deck-adapter.ts'
import { createRolloutStore } from './rollout-store.ts'
import { NO_MEMORY, type Memory } from './member.ts'
import { createOutbox, type OutboxState } from './outbox.ts'
import { batchesOf, matchesLabels } from './plan.ts'
import { allReleases, createPackages } from './packages.ts'
import { membersOf, noMember, type Member } from './presence.ts'
import { MAX_CRASH_CHARS, MAX_ID, type FleetRollout, type Kind, STATES } from './document.ts'
import { startRollout, giveUp, steerRollout } from './rollout.ts'
import { createSilenceLog } from './silence-log.ts'
import { createStore, notPushed, type Pushed } from './store.ts'
import type { Person, createRpcClient } from './rpc-client.ts'
import type { Answer } from './rpc-protocol.ts'
import type { Page, createFeed } from './feed.ts'
import type { AppStatus } from './member-status.ts'
import type { Options } from './fleet.ts'
import type { Silence } from './silence-watch.ts'
import type { BucketVersion } from './bucket-version.ts'
import type { DeckEvent } from '../events/stream.ts'

/**
 * An app of this host in its fleet: the members that have it too, and its rollouts over all of them, host by host.
 * Whatever fails here harms neither the app nor others.
 */
/** What others need of it; its host needs the rest. */
export type AppFleet = Omit<ReturnType<typeof createAppFleet>, 'describe' | 'away' | 'looked' | 'named' | 'close'>
type Order = Omit<import('./rpc-server.ts').Order, 'app'>
type Within = { withinMs?: number }
export type FleetStatus = {
  name: string,
  app: string,
  member: string,
  nats: Presence,
  /** why the others do not see this host */
  problem: string | null,
  /** those that have the app */
  members: Member[],
  /** of the app */
  rollout: FleetRollout | null,
  /** what of the app's history the fleet has */
  outbox: OutboxState
}
type Plan = { batches: string[][], leftOut: { member: string, reason: string }[], refusals: string[] }
export type Wanted = { kind: Kind, path?: string, digest?: string, release?: string, note?: string,
  batch?: string | number, pauseMs?: number, deadlineMs?: number, order?: string, canary?: string,
  onFailure?: 'hold' | 'rollback', only?: Record<string, string> }
/** In which part of the process something runs: what is thrown there is a fault of the app, and none of the host. */
export type Scope = { run: <T>(work: () => T) => T, call: (work: () => unknown) => void,
  bind: <A extends unknown[]>(handler: (...args: A) => unknown) => (...args: A) => void }
/** What a fleet has to know of an app. */
export type AppPart = {
  /** its name */
  app: string,
  deck: OwnDeck,
  state: () => AppStatus['state'],
  /** its data folder */
  folder: string,
  /** releases.root */
  root?: string,
  /** of its admin page, for people */
  url: string | null,
  log: Log,
  scope: Scope
}
export type Log = { warn: (fields: object, text: string) => void }
/** What the host lends each of its apps. */
type Lent = {
  options: Options,
  member: string,
  host: string,
  nats: Connection,
  presence: import('./presence.ts').Presence,
  silences: () => Silence[],
  forget: (member: string, actor: string) => Promise<void>,
  feed: ReturnType<typeof createFeed>,
  bucketVersion: BucketVersion,
  asking: ReturnType<typeof createRpcClient>,
  /** another member has the name of this host */
  nameProblem: () => string | null
}

const DEADLINE_MS = 60 * 60_000
/** A page does not wait longer than this for NATS. */
export const LOOK_WITHIN_MS = 1000
/** Events that other members cause may not fill the history of this app: a rollout causes only a few. */
const TOLD = Object.freeze({ burst: 100, everyMs: 10_000 })
const ENDS = new Set(['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back'])

export function createAppFleet ({ app, deck, state, folder, root, url, log, scope }: AppPart,
  { options, member, host, nats, presence, silences, forget, feed, bucketVersion, asking, nameProblem }: Lent)
{
  const file = path.join(folder, 'fleet.json')
  const listeners: Set<() => void> = new Set()
  const waitMs = createRateLimiter({ ...TOLD, now: () => performance.now() })

  const rolloutStore = createRolloutStore({ nats, app, scope, bucketVersion })
  const store = createStore({ nats, fleet: options.name, app })
  const packages = createPackages({ root, member, app, store, releases: () => allReleases(deck.releases),
    onError: (error) => log.warn({ err: error }, 'cannot remove old pushes from releases.root') })
  const runtime = createMemberRuntime({ rolloutStore, member, boot: randomUUID(),
    memory: restoreMemory(Object(readJson(file)), deck), remember: storeMemory,
    deckAdapter: createDeckAdapter(deck, options.accept, packages), tell: publishEvent, onWritten: tellMoments,
    onDocument })
  const outbox = createOutbox({ nats, history: deck.history, events: deck.events,
    teller: () => ({ member, host, app }) })
  const tellSilence = createSilenceLog({ app, member, history: deck.history, publish: deck.events.publish })
  const unsubscribe = deck.events.subscribe(onEvent)
  packages.sweep()

  return {
    app,
    /** the name of this host in the fleet */
    member,
    /** as it was last seen */
    status: statusNow,
    /** those that have the app, or the one of this name; throws not-found */
    members: membersNamed,

    /** As it is now, or as it was last seen where NATS is out of reach. */
    async look (): Promise<FleetStatus> {
      await waitAtMost(Promise.all([presence.all(), runtime.newest()]), LOOK_WITHIN_MS)
      return statusNow()
    },

    /** Of other hosts that have the app and do not report, by name; `heardAt`: monotonic, ms */
    silences: (): (Member & { heardAt: number })[] =>
      silences().flatMap(({ host, heardAt }) => membersOf([host], app).map((each) => ({ ...each, heardAt }))),

    /** removes a host that will not come back, with all of its apps; throws not-found, not-possible, fleet-away */
    forget,
    /** rollouts before the present one, newest first */
    past: rolloutStore.past,

    /** Events of all members, newest first. @throws {DeckError} fleet-away, not-found */
    async history (wanted: Omit<import('./feed.ts').Wanted, 'app'>): Promise<Page> {
      const page = valueOrThrow(await feed.read({ ...wanted, app }))
      // One that is gone may still have events there.
      if (page.items.length === 0 && page.next === null && !wanted.before) await membersNamed(wanted.member)
      return page
    },

    /** What `begin` would do now. */
    async plan (wanted: Wanted): Promise<Plan> {
      const { members, isComplete } = await allMembers()
      const { there, absent } = chooseMembers(members, wanted.only)
      const document = runtime.document
      const refusals = [nameProblem(), isComplete ? null : membersUnknown(nats.state).message]
      if (document && !STATES[document.state].done)
        refusals.push(`Rollout ${document.id} of the fleet is ${document.state}. Only one can run at a time`)
      let batches: string[][] = []
      try {
        checkAccepting(there, wanted.only)
        batches = batchesOf(wanted, there)
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        refusals.push(error.message)
      }
      return { batches, leftOut: absent.map(leftOutOf), refusals: refusals.filter((each) => each !== null) }
    },

    /** @throws {DeckError} rollout-running, not-found, forbidden, invalid-body, fleet-away */
    async begin (wanted: Wanted, actor: string): Promise<FleetRollout> {
      const problem = nameProblem()
      if (problem !== null) throw new DeckError('not-possible', problem)
      if (wanted.digest !== undefined && !await store.has(wanted.digest)) throw notPushed(wanted.digest)
      const present = await allMembers()
      if (!present.isComplete) throw membersUnknown(nats.state)
      const { there, absent } = chooseMembers(present.members, wanted.only)
      checkAccepting(there, wanted.only)
      const { kind, path, digest, release, pauseMs = 0, deadlineMs = DEADLINE_MS, onFailure = 'hold', note = null } =
        wanted
      const plan = { app, kind, source: { path, digest, release }, batches: batchesOf(wanted, there), pauseMs,
        deadlineMs, onFailure, absent: absent.map((each) => each.member), actor, note }
      const seen = Math.max(runtime.seen.rollout, ...present.members.map((each) => each.seen.rollout))
      return changeRollout((document) => {
        const id = nextId(Math.max(seen, document?.id ?? 0))
        const next = startRollout(document, { ...plan, uid: randomUUID(), id, at: isoNow() },
          silentIn(document, present))
        checkForgotten(document, present.members)
        return next
      })
    },

    /** @throws {DeckError} not-found, rollout-ended, rollout-state, fleet-away */
    async steer (order: 'pause' | 'resume' | 'abort', actor: string): Promise<FleetRollout> {
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

    /** Calls the listener at each change of the rollout. @returns ends it */
    onRollout (listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    /** what can be deployed by its digest, newest first; throws fleet-away */
    pushed: store.list,

    /** Takes a tar archive, by gzip. @throws {DeckError} fleet-away, invalid-body, payload-too-large */
    async push (digest: string, archive: AsyncIterable<Buffer>, actor: string): Promise<Pushed & { isNew: boolean }> {
      const current = (await runtime.newest())?.source.digest
      return store.put(digest, archive, { actor, named: current === undefined ? [] : [current] })
    },

    /** Calls the API of the app on one member for somebody who is signed in here. */
    ask: (name: string, order: Order, person: Person, how?: Within): Promise<Answer> =>
      asking.ask(name, { ...order, app }, person, how),

    /** The same, where a refusal is an error. */
    obtain: (name: string, order: Omit<Order, 'headers'> & Partial<Order>, person: Person,
      how?: Within): Promise<unknown> => asking.obtain(name, { ...order, app }, person, how),

    /** What this host tells others of the app. */
    describe: (): AppStatus => ({ app, state: state(), ...describeDeck(deck), turnOf: runtime.task?.fleet ?? null,
      seen: runtime.seen, url }),

    /** NATS is out of reach. */
    away: runtime.away,
    /** it is known who is silent */
    looked: tellSilence,
    /** whether the name of this host is its own */
    named: runtime.named,

    async close () {
      unsubscribe()
      runtime.close()
      packages.close()
      store.close()
      await outbox.close()
    }
  }

  /** @throws {DeckError} not-found */
  async function membersNamed (only?: string): Promise<Member[]> {
    const { members } = await allMembers()
    const found = members.filter((each) => only === undefined || each.member === only)
    if (only !== undefined && found.length === 0) throw noMember(only, members.map((each) => each.member))
    return found
  }

  async function allMembers () {
    const { members, isComplete } = await presence.all()
    return { members: membersOf(members, app), isComplete }
  }

  async function changeRollout (to: (document: FleetRollout | null) => FleetRollout) {
    const { before, document, revision } = await rolloutStore.change(to)
    tellMoments(document, before)
    runtime.see(document, revision)
    return document
  }

  function statusNow (): FleetStatus {
    const [members, rollout] = [membersOf(presence.list(), app), runtime.document]
    return { name: options.name, app, member, nats: reachOf(nats.state), problem: nameProblem() ?? presence.problem,
      members, rollout, outbox: outbox.state }
  }

  /** Until the rollout has been read the fleet counts as out of reach: else it would look as if there were none. */
  function reachOf (state: Presence): Presence {
    return state.isConnected && !runtime.isKnown
      ? { ...state, isConnected: false, problem: state.problem ?? 'its rollout has not been read yet' }
      : state
  }

  function onDocument () {
    presence.tellSoon()
    for (const listener of listeners) listener()
  }

  /** Only the member that wrote a change publishes its events; turns have events of their own deck. */
  function tellMoments ({ id, kind, timeline }: FleetRollout, before: FleetRollout | null) {
    for (const moment of timeline) {
      const { type, actor, message } = moment
      if (before?.timeline.includes(moment) || type.startsWith('turn-')) continue
      publishEvent(`fleet.rollout-${type}`, `rollout ${id} of the fleet (${kind})${message ? `: ${message}` : ''}`,
        actor ?? 'system')
    }
  }

  function onEvent ({ type, cause, rollout, release, actor, message, detail }: DeckEvent) {
    if (type === 'rollout.succeeded') packages.clean()
    if (type.startsWith('rollout.') || type.startsWith('worker.') || type.startsWith('crash.')) presence.tellSoon()
    // Before it goes back from a release that fails, it tries whether the one before does better.
    const goesBack = type === 'rollout.started'
      ? !Object(detail?.strategy).canary
      : type === 'rollout.judged' && detail?.state === 'rolling'
    if (goesBack && actor === 'guard') {
      runtime.undone({ release: typeof detail?.from === 'string' ? detail.from : null,
        reason: message ?? 'the guard rolled back' })
    }
    if (type === 'crash.group-new' && isOneOf(BLAMED_CAUSES, cause)) tellCrash({ release, message, detail })
    const { task } = runtime
    if (task && rollout !== null && rollout === task.rollout && ENDS.has(type))
      runtime.ended(resultOf({ type, release, message }, task))
  }

  function tellCrash ({ release, message, detail }: Pick<DeckEvent, 'release' | 'message' | 'detail'>) {
    const group = attempt(() => deck.crashes.group(Number(detail?.crashGroup)))
    if (group)
      runtime.crashed({ release,
        crash: { group: group.id, fingerprint: group.fingerprint, text: String(message).slice(0, MAX_CRASH_CHARS) } })
  }

  function storeMemory (memory: Memory) {
    try {
      writeJson(file, { memory })
    } catch (error) {
      log.warn({ err: error }, 'cannot write fleet.json')
    }
  }

  function publishEvent (type: string, message: string, actor: string = 'system') {
    if (actor !== 'system' || waitMs() === 0) deck.events.publish({ type, actor, message })
  }
}

function isoNow () {
  return new Date().toISOString()
}

/** A stopped app has nobody who could take its turn. */
function canTakePart ({ isSilent, state }: Member) {
  return !isSilent && (state === 'running' || state === 'starting')
}

/** `only`: labels that they have, see matchesLabels() */
function chooseMembers (members: Member[], only?: Record<string, string>) {
  const matching = members.filter(({ labels }) => matchesLabels(labels, only))
  return { there: matching.filter(canTakePart), absent: matching.filter((each) => !canTakePart(each)) }
}

function leftOutOf ({ member, isSilent, ageMs, state }: Member) {
  return { member, reason: isSilent ? `silent for ${formatDuration(ageMs)}` : `the app is ${state} there` }
}

function labelsText (labels: Record<string, string> = {}) {
  return Object.entries(labels).map((label) => label.join('=')).join(', ')
}

/** @throws {DeckError} not-found: there are none; forbidden: one of them does not take part in rollouts */
function checkAccepting (members: Member[], only?: Record<string, string>) {
  if (members.length === 0)
    throw new DeckError('not-found', `only: expected labels of an online member, received ${labelsText(only)}`)
  const closed = members.filter(({ accept }) => accept !== 'operate')
  if (closed.length === 0) return
  throw new DeckError('forbidden',
    `${closed.map(({ member }) => member).join(', ')}: expected fleet.accept "operate", received "${closed[0].accept}"`)
}

/** `highest`: that anybody has seen @throws {DeckError} not-possible */
function nextId (highest: number): number {
  if (highest < MAX_ID) return highest + 1
  const mend =
    'Someone with write access to the fleet wrote it. Stop the app on all members, remove fleet.json from its data folders, and start it'
  throw new DeckError('not-possible',
    `A member has seen rollout ${highest} of the fleet, the highest possible number. ${mend}`)
}

/**
 * A member that is still in a turn of a rollout that NATS has lost must finish it before another rollout begins.
 * @throws {DeckError} rollout-running
 */
function checkForgotten (document: FleetRollout | null, members: Member[]) {
  const busy = members.filter(({ isSilent, turnOf }) => !isSilent && turnOf !== null && turnOf !== document?.uid).map((
    each
  ) => each.member)
  if (busy.length > 0)
    throw new DeckError('rollout-running', `Still in a turn of a rollout that NATS has lost: ${busy.join(', ')}`)
}

/**
 * A member that has left for good, or no longer has the app, is in no list, so it counts as silent once the list is
 * complete.
 */
function silentIn (document: FleetRollout | null,
  { members, isComplete }: { members: Member[], isComplete: boolean }): string[]
{
  const isSilentOf = new Map(members.map((each) => [each.member, !canTakePart(each)]))
  return Object.keys(document?.turns ?? {}).filter((member) => isSilentOf.get(member) ?? isComplete)
}

/**
 * If the last master ended in its turn, the history knows how its own rollout ended.
 * @param file fleet.json, empty if it is missing
 */
function restoreMemory (file: { memory?: Partial<Memory> }, { history }: Pick<OwnDeck, 'history'>): Memory {
  const memory = { ...NO_MEMORY, ...file.memory }
  const { task } = memory
  const own = task && task.result === null && task.rollout !== null ? history.rollout(task.rollout) : null
  if (task && own?.done) {
    task.result = resultOf({ type: `rollout.${own.state}`, release: own.to, message: own.reason }, { way: task.way,
      isAborted: false })
  }
  return memory
}
