import { batchesOf } from '../../server/fleet/plan.js'
import { refusalOf } from '../../server/fleet/refusal.js'
import { finishTurn, startRollout, steerRollout, takeTurn } from '../../server/fleet/rollout.js'

/**
 * A fleet without a NATS server, for tests of the admin side: it is what the test says, and its rollout is a real document.
 * @typedef {import('../../server/fleet/app-fleet.js').AppFleet} Fleet
 * @typedef {import('../../server/fleet/presence.js').Member} Member
 * @typedef {import('../../server/fleet/rollout.js').FleetRollout} FleetRollout
 * @typedef {ReturnType<typeof createFakeFleet>} FakeFleet
 */

const AT = '2026-01-01T12:00:00.000Z'
const CODE = Object.freeze({ version: '1.4.2', commit: '4be1a4be1a' })

/** @param {Partial<Member> & { member: string }} fields @returns {Member} one that is well */
export function aMember ({ member, ...fields }) {
  return {
    member,
    home: `home of ${member}`,
    boot: `boot of ${member}`,
    host: `${member.split('-')[0]}.example.com`,
    app: 'shop',
    state: 'running',
    version: '0.1.0',
    labels: { zone: member.length % 2 === 0 ? 'a' : 'b' },
    release: 'r3',
    code: { ...CODE },
    workers: { ready: 4, desired: 4 },
    health: { tone: 'ok', text: 'All 4 workers are ready' },
    vitals: { requestsPerSecond: 120, latencyP99Ms: 21.5 },
    openCrashes: 0,
    unwritten: null,
    rollout: null,
    turnOf: null,
    url: null,
    accept: 'operate',
    seen: { rollout: 0, revision: 0 },
    isSilent: false,
    isOwn: false,
    ageMs: 1200,
    ...fields
  }
}

/** @param {string[]} members @param {Partial<Parameters<typeof startRollout>[1]>} [fields] @returns {FleetRollout} in which nobody has begun */
export function aRollout (members, fields = {}) {
  return startRollout(null, { id: 7, uid: 'seven', app: 'shop', kind: 'deploy', source: {}, batches: members.map((member) => [member]), pauseMs: 0, deadlineMs: 3_600_000, onFailure: 'hold', absent: [], note: null, actor: 'ada', at: AT, ...fields })
}

/** @param {FleetRollout} rollout @param {...string} members  whose turns begin and end well */
export function afterTurnsOf (rollout, ...members) {
  return members.reduce((document, member, index) => {
    const at = (/** @type {number} */ ms) => new Date(Date.parse(rollout.startedAt) + index * 5000 + ms).toISOString()
    return finishTurn(takeTurn(document, member, { at: at(0), boot: 'boot', from: 'r3' }), member, { at: at(4200), state: 'succeeded', rollout: 3, to: 'r4' })
  }, rollout)
}

/** @param {FleetRollout} rollout @param {string} member whose turn begins @param {string} [at] */
export function inTurnOf (rollout, member, at = AT) {
  return takeTurn(rollout, member, { at, boot: 'boot', from: 'r3' })
}

/** @param {FleetRollout} rollout @param {string} member whose turn begins, and fails @param {string} reason */
export function failedTurnOf (rollout, member, reason) {
  return finishTurn(inTurnOf(rollout, member), member, { at: AT, state: 'failed', rollout: 3, reason })
}

/**
 * @param {{ members?: Member[], rollout?: FleetRollout | null, past?: FleetRollout[], nats?: Partial<import('../../server/fleet/nats-connection.js').Presence>, problem?: string | null, answer?: (member: string, order: { method: string, path: string, headers?: Record<string, string | undefined> }) => { status: number, body: unknown } }} [given] `answer`: what a member is to answer
 * @returns {Fleet & { set: (changes: Partial<import('../../server/fleet/app-fleet.js').FleetStatus>) => void, asked: any[] }}
 */
export function createFakeFleet ({ members = [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2' })], rollout = null, past = [], nats = {}, problem = null, answer = () => ({ status: 200, body: {} }) } = {}) {
  /** @type {import('../../server/fleet/app-fleet.js').FleetStatus} */
  let state = { name: 'prod', app: 'shop', member: members[0].member, nats: { isConnected: true, since: AT, server: 'nats.example.com:4222', problem: null, ...nats }, problem, outbox: { waiting: 0, problem: null }, members, rollout }
  /** @type {Set<() => void>} */
  const listeners = new Set()
  /** @type {any[]} what was ordered, oldest first */
  const asked = []
  const by = (/** @type {string} */ actor) => ({ at: new Date().toISOString(), actor })

  return {
    app: state.app,
    member: state.member,
    asked,
    status: () => state,
    look: async () => state,
    silences: () => state.members.filter(({ isSilent, isOwn }) => isSilent && !isOwn).map((each) => ({ ...each, heardAt: performance.now() - each.ageMs })),
    async forget (member, actor) {
      asked.push({ order: 'forget', member, actor })
      set({ members: state.members.filter((each) => each.member !== member) })
    },
    past: async () => past,
    history: async () => ({ items: [], next: null }),
    pushed: async () => [],
    ask,
    async obtain (member, order, person) {
      const { status, body } = await ask(member, order, person)
      if (status >= 400) throw refusalOf({ status, body })
      return JSON.parse(body)
    },
    crashes: async () => ({ asked: 0, answered: 0, silent: [], refused: [], cut: [], items: [] }),
    async logs ({ lines, ...wanted }, person) {
      const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== undefined).map(([name, value]) => /** @type {[string, string]} */ ([name, String(value)])))
      const asked = state.members.filter(({ member }) => wanted.member === undefined || member === wanted.member)
      const there = asked.filter(({ isSilent }) => !isSilent)
      const pages = await Promise.all(there.map(async ({ member }) => ({ member, items: JSON.parse((await ask(member, { method: 'GET', path: `/logs?${query}` }, person)).body).items ?? [] })))
      const items = pages.flatMap(({ member, items: all }) => all.map((/** @type {any} */ line) => ({ member, place: '1o0', ...line })))
      items.sort((one, other) => one.arrivedAt < other.arrivedAt ? -1 : 1)
      return { asked: asked.length, answered: there.length, silent: asked.filter(({ isSilent }) => isSilent).map(({ member }) => member), refused: [], cut: [], items: items.slice(-(lines ?? 100)), next: null }
    },
    settleCrash: async () => { throw new Error('expected no crash to be settled') },
    push: async () => { throw new Error('expected no push') },
    async plan (wanted) {
      const there = state.members.filter(({ isSilent }) => !isSilent)
      return { batches: batchesOf(wanted, there), leftOut: state.members.filter(({ isSilent }) => isSilent).map(({ member }) => ({ member, reason: 'silent for 1 min 05 s' })), refusals: [] }
    },
    async begin (wanted, actor) {
      const { kind, note = null, pauseMs = 0, deadlineMs = 3_600_000, onFailure = 'hold' } = wanted
      const document = startRollout(state.rollout, { id: (state.rollout?.id ?? 0) + 1, uid: `uid of ${(state.rollout?.id ?? 0) + 1}`, app: 'shop', kind, source: {}, batches: batchesOf(wanted, state.members), pauseMs, deadlineMs, onFailure, absent: [], note, ...by(actor) })
      asked.push({ order: 'begin', wanted, actor })
      set({ rollout: document })
      return document
    },
    async steer (order, actor) {
      const document = steerRollout(/** @type {FleetRollout} */ (state.rollout), order, by(actor))
      asked.push({ order, actor })
      set({ rollout: document })
      return document
    },
    onRollout (listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    set
  }

  /** @param {string} member @param {Parameters<Fleet['obtain']>[1]} order @param {{ actor: string }} person */
  async function ask (member, { method, path, headers, body: given }, { actor }) {
    if (method !== 'GET' && path !== '/rollouts/preview') asked.push({ order: method, member, path, body: given, actor })
    const { status, body } = answer(member, { method, path, headers })
    return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  }

  /** @param {Partial<import('../../server/fleet/app-fleet.js').FleetStatus>} changes */
  function set (changes) {
    const isNew = 'rollout' in changes
    state = { ...state, ...changes }
    if (isNew) for (const listener of listeners) listener()
  }
}

/**
 * The hosts of such a fleet, with all of their apps.
 * @param {Member[]} members  one for each app of each host @param {{ fleets?: Fleet[], nats?: Partial<import('../../server/fleet/nats-connection.js').Presence>, problem?: string | null }} [given] `fleets`: of apps of the first host
 * @returns {import('../../server/fleet/fleet.js').Fleet}
 */
export function createFakeHostFleet (members, { fleets = [], nats = {}, problem = null } = {}) {
  /** @type {Map<string, import('../../server/fleet/presence.js').Host>} */
  const hosts = new Map()
  for (const { app, state, release, code, workers, health, vitals, openCrashes, unwritten, rollout, turnOf, seen, ...rest } of members) {
    const host = hosts.get(rest.member) ?? { ...rest, apps: [] }
    if (app !== '') host.apps.push({ app, state, release, code, workers, health, vitals, openCrashes, unwritten, rollout, turnOf, seen, url: rest.url })
    hosts.set(rest.member, host)
  }
  const status = { name: 'prod', member: members[0].member, nats: { isConnected: true, since: AT, server: 'nats.example.com:4222', problem: null, ...nats }, problem, members: [...hosts.values()] }
  return {
    member: status.member,
    status: () => status,
    look: async () => status,
    silences: () => status.members.filter(({ isSilent, isOwn }) => isSilent && !isOwn).map((host) => ({ host, heardAt: performance.now() - host.ageMs, steadyFrom: null })),
    of: (app) => fleets.find((fleet) => fleet.app === app) ?? null,
    join: () => async () => {},
    async forget (name) { status.members = status.members.filter(({ member }) => member !== name) },
    tellSoon () {},
    close: async () => {}
  }
}
