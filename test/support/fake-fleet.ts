import { batchesOf } from '../../server/fleet/plan.ts'
import { noMember } from '../../server/fleet/presence.ts'
import { refusalOf } from '../../server/fleet/rpc-client.ts'
import { DeckError } from '../../server/errors.ts'
import type { FleetRollout } from '../../server/fleet/document.ts'
import { finishTurn, startRollout, steerRollout, takeTurn } from '../../server/fleet/rollout.ts'
import type { AppFleet as Fleet, FleetStatus } from '../../server/fleet/app-fleet.ts'
import type { Host, Member } from '../../server/fleet/presence.ts'
import type { Presence } from '../../server/fleet/nats-connection.ts'

// A fleet without a NATS server, for tests of the admin side: it is what the test says, and its rollout is a real
// document.

/** `order`: a method, where a member was asked for something */
type Asked = { order: unknown, member?: string, path?: string, body?: unknown, wanted?: unknown, actor: string }

/** What a member answers. */
type Said = { status: number, headers?: { location?: string }, body: unknown }
type Order = Omit<Parameters<Fleet['obtain']>[1], 'app'>
type Person = Parameters<Fleet['obtain']>[2]

const AT = '2026-01-01T12:00:00.000Z'
const CODE = Object.freeze({ version: '1.4.2', commit: '4be1a4be1a' })

/** @returns one that is well */
export function aMember ({ member, ...fields }: Partial<Member> & { member: string }): Member {
  return { member, home: `home of ${member}`, boot: `boot of ${member}`, host: `${member.split('-')[0]}.example.com`,
    app: 'shop', state: 'running', version: '0.1.0', labels: { zone: member.length % 2 === 0 ? 'a' : 'b' },
    release: 'r3', code: { ...CODE }, workers: { ready: 4, desired: 4 },
    health: { tone: 'ok', text: 'All 4 workers are ready' }, vitals: { requestsPerSecond: 120, latencyP99Ms: 21.5 },
    openCrashes: 0, unwritten: null, rollout: null, turnOf: null, url: null, accept: 'operate',
    seen: { rollout: 0, revision: 0 }, isSilent: false, isOwn: false, ageMs: 1200, ...fields }
}

/** @returns in which nobody has begun */
export function aRollout (members: string[], fields: Partial<Parameters<typeof startRollout>[1]> = {}): FleetRollout {
  return startRollout(null, { id: 7, uid: 'seven', app: 'shop', kind: 'deploy', source: {},
    batches: members.map((member) => [member]), pauseMs: 0, deadlineMs: 3_600_000, onFailure: 'hold', absent: [],
    note: null, actor: 'ada', at: AT, ...fields })
}

/** `members`: whose turns begin and end well */
export function afterTurnsOf (rollout: FleetRollout, ...members: string[]) {
  return members.reduce((document, member, index) => {
    const at = (ms: number) => new Date(Date.parse(rollout.startedAt) + index * 5000 + ms).toISOString()
    return finishTurn(takeTurn(document, member, { at: at(0), boot: 'boot', from: 'r3' }), member, { at: at(4200),
      state: 'succeeded', rollout: 3, to: 'r4' })
  }, rollout)
}

/** `member`: whose turn begins */
export function inTurnOf (rollout: FleetRollout, member: string, at: string = AT) {
  return takeTurn(rollout, member, { at, boot: 'boot', from: 'r3' })
}

/** `member`: whose turn begins, and fails */
export function failedTurnOf (rollout: FleetRollout, member: string, reason: string) {
  return finishTurn(inTurnOf(rollout, member), member, { at: AT, state: 'failed', rollout: 3, reason })
}

/** `answer`: what a member is to answer */
export function createFakeFleet (
  { members = [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2' })], rollout = null, past = [],
    nats = {}, problem = null, answer = () => ({ status: 200, body: {} }) }: { members?: Member[],
      rollout?: FleetRollout | null, past?: FleetRollout[], nats?: Partial<Presence>, problem?: string | null,
      answer?: (member: string, order: Order, person: Person) => Said | Promise<Said> } = {}
): Fleet & { set: (changes: Partial<FleetStatus>) => void, asked: Asked[] } {
  let state: FleetStatus = { name: 'prod', app: 'shop', member: members[0].member,
    nats: { isConnected: true, since: AT, server: 'nats.example.com:4222', problem: null, ...nats }, problem,
    outbox: { waiting: 0, problem: null }, members, rollout }
  const listeners: Set<() => void> = new Set()
  /** what was ordered, oldest first */
  const asked: Asked[] = []
  const by = (actor: string) => ({ at: new Date().toISOString(), actor })

  return { app: state.app, member: state.member, asked, status: () => state, look: async () => state,
    async members (only) {
      const found = state.members.filter(({ member }) => only === undefined || member === only)
      if (only !== undefined && found.length === 0) throw noMember(only, state.members.map(({ member }) => member))
      return found
    },
    silences: () =>
      state.members.filter(({ isSilent, isOwn }) => isSilent && !isOwn).map((each) => ({ ...each,
        heardAt: performance.now() - each.ageMs })
      ), async forget (member, actor) {
    asked.push({ order: 'forget', member, actor })
    set({ members: state.members.filter((each) => each.member !== member) })
  }, past: async () => past, history: async () => ({ items: [], next: null }), pushed: async () => [], ask,
    async obtain (member, order, person) {
      const { status, body } = await ask(member, order, person)
      if (status >= 400) throw refusalOf({ status, body })
      return JSON.parse(body)
    }, push: async () => {
      throw new Error('expected no push')
    }, async plan (wanted) {
    const there = state.members.filter(({ isSilent }) => !isSilent)
    return { batches: batchesOf(wanted, there),
      leftOut: state.members.filter(({ isSilent }) => isSilent).map(({ member }) => ({ member,
        reason: 'silent for 1 min 05 s' })
      ), refusals: [] }
  }, async begin (wanted, actor) {
    const { kind, note = null, pauseMs = 0, deadlineMs = 3_600_000, onFailure = 'hold' } = wanted
    const document = startRollout(state.rollout, { id: (state.rollout?.id ?? 0) + 1,
      uid: `uid of ${(state.rollout?.id ?? 0) + 1}`, app: 'shop', kind, source: {},
      batches: batchesOf(wanted, state.members), pauseMs, deadlineMs, onFailure, absent: [], note, ...by(actor) })
    asked.push({ order: 'begin', wanted, actor })
    set({ rollout: document })
    return document
  }, async steer (order, actor) {
    const document = steerRollout(state.rollout as FleetRollout, order, by(actor))
    asked.push({ order, actor })
    set({ rollout: document })
    return document
  }, onRollout (listener) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, set }

  async function ask (member: string, { method, path, headers, body: given }: Parameters<Fleet['obtain']>[1],
    person: Person)
  {
    if (state.members.some((each) => each.member === member && each.isSilent))
      throw new DeckError('no-master', `${member} is offline`)
    if (method !== 'GET' && path !== '/rollouts/preview')
      asked.push({ order: method, member, path, body: given, actor: person.actor })
    const { status, headers: more, body } = await answer(member, { method, path, headers, body: given }, person)
    return { status, headers: { 'content-type': 'application/json', ...more }, body: JSON.stringify(body) }
  }

  function set (changes: Partial<FleetStatus>) {
    const isNew = 'rollout' in changes
    state = { ...state, ...changes }
    if (isNew) { for (const listener of listeners) listener() }
  }
}

/**
 * The hosts of such a fleet, with all of their apps. `members`: one for each app of each host; `fleets`: of
 * apps of the first host.
 */
export function createFakeHostFleet (members: Member[],
  { fleets = [], nats = {}, problem = null }: { fleets?: Fleet[], nats?: Partial<Presence>, problem?: string | null } =
    {}): import('../../server/fleet/fleet.ts').Fleet
{
  const hosts: Map<string, Host> = new Map()
  for (const { app, state, release, code, workers, health, vitals, openCrashes, unwritten, rollout, turnOf, seen,
    ...rest } of members)
  {
    const host = hosts.get(rest.member) ?? { ...rest, apps: [] }
    if (app !== '')
      host.apps.push({ app, state, release, code, workers, health, vitals, openCrashes, unwritten, rollout, turnOf,
        seen, url: rest.url })
    hosts.set(rest.member, host)
  }
  const status = { name: 'prod', member: members[0].member,
    nats: { isConnected: true, since: AT, server: 'nats.example.com:4222', problem: null, ...nats }, problem,
    members: [...hosts.values()] }
  return { member: status.member, status: () => status, look: async () => status,
    silences: () =>
      status.members.filter(({ isSilent, isOwn }) => isSilent && !isOwn).map((host) => ({ host,
        heardAt: performance.now() - host.ageMs, steadyFrom: null })
      ), of: (app) => fleets.find((fleet) => fleet.app === app) ?? null, join: () => async () => {},
    async forget (name) {
      status.members = status.members.filter(({ member }) => member !== name)
    }, tellSoon () {}, close: async () => {} }
}
