import { aMember, aRollout, afterTurnsOf, createFakeFleet, inTurnOf } from '../support/fake-fleet.ts'
import { HOUR_MS, lineOf, loadAt, MINUTE_MS, SECOND_MS, SLOTS, type Admin } from './life.ts'
import type { CrashGroup } from '../../server/crashes/api.ts'
import type { FleetRollout } from '../../server/fleet/document.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/**
 * The fleet of the shop, of which this deck is a member. Two minutes ago its hosts began to get one more commit. The
 * first of them crashes since, one is silent, and one ran out of memory in the night.
 */
const MEGABYTE = 1024 ** 2
const CODE = { version: '1.4.6', commit: '4be1a4be1a' }
const NEXT_CODE = { version: '1.4.7', commit: '7d02f7d02f' }
const NAMES = [1, 2, 3, 4, 5, 6].map((number) => `web-${number}-shop`)
const [OWN, SECOND, THIRD, FOURTH, SILENT, FIRST_OUT] = NAMES

export function fleetOf ({ deck, history }: Admin) {
  const now = Date.now()
  const at = (ms: number) => new Date(now - ms).toISOString()
  const members = NAMES.map((member, index) =>
    aMember({ member, isOwn: member === OWN, code: CODE, release: 'r6', host: hostOf(member),
      labels: { zone: index < 3 ? 'a' : 'b' },
      vitals: { requestsPerSecond: Math.round(loadAt(now / SECOND_MS) * (1 + index / 50)),
        latencyP99Ms: 212 + 6 * index } })
  )
  const set = (name: string, fields: object) => Object.assign(members[NAMES.indexOf(name)], fields)
  set(SILENT, { isSilent: true, ageMs: 3 * MINUTE_MS, code: { ...CODE, version: '1.4.5' }, release: 'r5' })
  set(FIRST_OUT, { code: NEXT_CODE, release: 'r7', openCrashes: 1,
    health: { tone: 'warn', text: 'All 4 workers are ready; 1 new crash in r7' } })
  set(SECOND, { code: NEXT_CODE, release: 'r7' })
  set(THIRD, { health: { tone: 'info', text: 'Deploying r7: 2 of 4 workers replaced' },
    rollout: { id: 7, kind: 'deploy', state: 'rolling', replaced: 2, total: 4 } })
  set(FOURTH, { openCrashes: 1 })
  const there = NAMES.filter((name) => name !== SILENT)
  const begun = aRollout(there, { batches: [[FIRST_OUT], [SECOND, THIRD], [OWN, FOURTH]], absent: [SILENT],
    note: 'prices by file', actor: 'grace', at: at(2 * MINUTE_MS) })
  const rollout = inTurnOf(afterTurnsOf(begun, FIRST_OUT, SECOND), THIRD, at(8 * SECOND_MS))
  tellReleases(rollout, 'r6', 'r7')
  const past = {
    ...afterTurnsOf(aRollout(there, { note: 'reports beside requests', actor: 'ada', at: at(2 * HOUR_MS) }), ...there),
    id: 6
  }
  tellReleases(past, 'r4', 'r6')
  const fleet = createFakeFleet({ members, rollout, past: [past],
    answer: (member, { path }) => ({ status: 200, body: { items: answerOf(deck, member, path), next: null } }) })
  fleet.history = async () => ({ items: eventsOf(history, at), next: null })
  return fleet
}

function tellReleases ({ turns }: FleetRollout, from: string, to: string) {
  for (const turn of Object.values(turns)) {
    if (turn.from) Object.assign(turn, { from, rollout: Number(to.slice(1)) })
    if (turn.to) turn.to = to
  }
}

function hostOf (member: string) {
  return `${member.slice(0, 5)}.example.com`
}

/** What this deck has on record, and what others have told. */
function eventsOf (history: Admin['history'], at: (ms: number) => string) {
  const told = (member: string, ms: number, fields: Partial<DeckEvent>) => {
    const [own] = history.page({ limit: 1 }).items
    return { member,
      event: { ...own, worker: null, slot: null, pid: null, cause: null, rollout: null, release: null, actor: null,
        code: null, signal: null, uptimeMs: null, message: null, detail: null, at: at(ms), ...fields } }
  }
  const rollout = { id: 7, kind: 'deploy', from: 'r6', to: 'r7', note: 'prices by file', actor: 'grace' }
  const others = [
    told(FIRST_OUT, 2 * MINUTE_MS, { type: 'rollout.started', cause: 'deploy', rollout: 7, actor: 'grace',
      message: 'prices by file', detail: { ...rollout, state: 'rolling' } }),
    told(FIRST_OUT, 1.9 * MINUTE_MS, { type: 'rollout.succeeded', cause: 'deploy', rollout: 7, actor: 'grace',
      detail: { ...rollout, state: 'succeeded' } }),
    ...[95, 70].map((seconds) =>
      told(FIRST_OUT, seconds * SECOND_MS, { type: 'worker.exited', cause: 'crash', worker: 30, slot: 2, release: 'r7',
        code: 1, uptimeMs: 9000, message: 'worker 30 (slot 2) exited with code 1: RangeError: no price for "lamp"' })
    ),
    told(OWN, 3 * MINUTE_MS, { type: 'fleet.host-silent',
      message: `${SILENT} is silent: no report for 30 s. When last heard, it ran shop r5 (4 of 4 workers ready).`,
      detail: { member: SILENT } }),
    told(FOURTH, 5 * HOUR_MS, { type: 'worker.exited', cause: 'crash', worker: 21, slot: 3, release: 'r4',
      signal: 'SIGABRT', uptimeMs: 18 * HOUR_MS, message: 'worker 21 (slot 3) ran out of memory' })
  ]
  const own = history.page({ limit: 60 }).items.filter(({ type }) => !type.startsWith('job.')).map((event) => ({
    member: OWN,
    event
  }))
  return [...own, ...others].sort((one, other) => other.event.at < one.event.at ? -1 : 1).slice(0, 40).map((
    { member, event },
    index
  ) => ({ seq: 100 - index, at: event.at, member, app: 'shop', host: hostOf(member), event }))
}

/** What a member says of its inside. */
function answerOf (deck: Admin['deck'], member: string, path: string): object[] {
  const host = NAMES.indexOf(member)
  if (path.startsWith('/logs')) return linesOf(host)
  if (path.startsWith('/crashes'))
    return member === OWN ? deck.crashes.page({ state: 'open' }).items : crashesOf(member, host)
  return deck.snapshot().workers.map((worker) => ({ ...worker,
    ...(isNew(member, worker.slot) &&
      { release: 'r7', id: Number(worker.id) + 4, startedAt: secondsAgo(8), readyAt: secondsAgo(7), restarts: 0 }),
    ...(member !== OWN && worker.vitals &&
      { vitals: { ...worker.vitals, rssBytes: Number(worker.vitals.rssBytes) + host * MEGABYTE } }) })
  )
}

/** Tells whether it runs the new commit already */
function isNew (member: string, slot: number) {
  return [FIRST_OUT, SECOND].includes(member) || (member === THIRD && slot <= 2)
}

function secondsAgo (seconds: number) {
  return new Date(Date.now() - seconds * SECOND_MS).toISOString()
}

function linesOf (host: number) {
  return [30, 19, 13, 9, 5, 2].map((seconds, index) => {
    const arrivedMs = Date.now() - seconds * SECOND_MS - 90 * host
    const slot = 1 + index % SLOTS.length
    return { slot, stream: 'stdout', text: lineOf(Math.floor(arrivedMs / SECOND_MS) * 4 + slot + host),
      arrivedAt: new Date(arrivedMs).toISOString(), place: `${slot}o${100 * index}` }
  })
}

function crashesOf (member: string, host: number): Partial<CrashGroup>[] {
  const at = (minutes: number) => new Date(Date.now() - minutes * MINUTE_MS).toISOString()
  const group = { id: host, state: 'open' as const, cause: 'crash' as const, hasReturned: false, culprit: null,
    lastCrash: 1, stateChangedAt: null, stateChangedBy: null, goneSince: null, returnedAt: null }
  if (member === FIRST_OUT)
    return [{ ...group, fingerprint: `v1:${'1'.repeat(32)}`, kind: 'exception', errorName: 'RangeError',
      message: 'no price for "lamp"', culprit: 'priceOf (lib/price.js)', count: 2, firstSeenAt: at(1.6),
      lastSeenAt: at(1.2), firstRelease: 'r7', lastRelease: 'r7', isNewInRelease: true }]
  if (member === FOURTH)
    return [{ ...group, fingerprint: `v1:${'2'.repeat(32)}`, kind: 'heap-out-of-memory', errorName: null,
      message: 'worker 21 (slot 3) ran out of memory', count: 1, firstSeenAt: at(300), lastSeenAt: at(300),
      firstRelease: 'r4', lastRelease: 'r4', isNewInRelease: false }]
  return []
}
