import { finishTurn, noteCrash, steerRollout, takeTurn } from '../../server/fleet/rollout.ts'
import { aMember, aRollout, createFakeFleet } from '../support/fake-fleet.ts'
import { present } from '../support/present.ts'
import { HOUR_MS, lineOf, loadAt, MINUTE_MS, SECOND_MS, SLOTS, type Admin } from './life.ts'
import { hashOf } from './release-book.ts'
import { COMMITS, SEVENTH_NOTE } from './story.ts'
import type { CrashGroup } from '../../server/crashes/api.ts'
import type { FleetRollout } from '../../server/fleet/document.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/**
 * The fleet of the shop, of which this deck is a member: r6 came to all of its hosts, and r7 comes now. It crashes on the
 * first of them, which has held the rollout; Grace goes on all the same. One host is silent, and one ran out of memory in
 * the night.
 */
const MEGABYTE = 1024 ** 2
const NAMES = [1, 2, 3, 4, 5, 6].map((number) => `web-${number}-shop`)
const [OWN, SECOND, THIRD, FOURTH, SILENT, FIRST_OUT] = NAMES
const LAMP = { name: 'RangeError', message: 'no price for "lamp"', culprit: 'priceOf (lib/price.js)',
  fingerprint: `v1:${'1'.repeat(32)}` }
/** of the hosts, from the present */
const BEGAN_MS = 150 * SECOND_MS
const CRASHED_MS = [125, 70].map((seconds) => seconds * SECOND_MS)
const RESUMED_MS = 50 * SECOND_MS
const TURN_MS = 19 * SECOND_MS

/** `isDeploying`: false where something else has just happened to this deck */
export function fleetOf ({ deck, history }: Admin, { isDeploying }: { isDeploying: boolean }) {
  const now = Date.now()
  const at = (ms: number) => new Date(now - ms).toISOString()
  const members = NAMES.map((member, index) =>
    aMember({ member, isOwn: member === OWN, code: codeOf('r6'), release: 'r6', host: hostOf(member),
      labels: { zone: index < 3 ? 'a' : 'b' },
      vitals: { requestsPerSecond: Math.round(loadAt(now / SECOND_MS) * (1 + index / 50)),
        latencyP99Ms: 212 + 6 * index } })
  )
  const set = (name: string, fields: object) => Object.assign(members[NAMES.indexOf(name)], fields)
  set(SILENT, { isSilent: true, ageMs: 3 * MINUTE_MS })
  set(FOURTH, { openCrashes: 1 })
  if (!isDeploying) return createFakeFleet({ members, rollout: sixthOf(history) })
  set(FIRST_OUT, { code: codeOf('r7'), release: 'r7', openCrashes: 1,
    health: { tone: 'warn', text: 'All 4 workers are ready; 1 new crash in r7' } })
  set(SECOND, { code: codeOf('r7'), release: 'r7' })
  set(THIRD, { health: { tone: 'info', text: 'Deploying r7: 2 of 4 workers replaced' },
    rollout: { id: 7, kind: 'deploy', state: 'rolling', replaced: 2, total: 4 }, turnOf: 'seven' })
  const rollout = seventhOf(at)
  const fleet = createFakeFleet({ members, rollout, past: [sixthOf(history)],
    answer: (member, { path }) => ({ status: 200, body: { items: answerOf(deck, member, path), next: null } }) })
  fleet.history = async () => ({ items: eventsOf(history, { rollout, at }), next: null })
  return fleet
}

/** As this deck has it on record. */
function sixthOf (history: Admin['history']): FleetRollout {
  const own = present(history.rollouts({ limit: 9 }).items.find(({ to }) => to === 'r6'))
  const { startedAt, from, id } = own
  const turnMs = Date.parse(present(own.finishedAt)) - Date.parse(startedAt)
  const after = (turns: number) => new Date(Date.parse(startedAt) + turns * turnMs).toISOString()
  return NAMES.reduce(
    (document, member, turn) =>
      finishTurn(takeTurn(document, member, { at: after(turn), boot: 'boot', from }), member, { at: after(turn + 1),
        state: 'succeeded', rollout: id, to: 'r6' }),
    aRollout(NAMES, { id: 6, note: 'reports beside requests', actor: own.actor, at: startedAt })
  )
}

function seventhOf (at: (ms: number) => string): FleetRollout {
  const there = NAMES.filter((name) => name !== SILENT)
  const begun = aRollout(there, { batches: [[FIRST_OUT], [SECOND, THIRD], [OWN, FOURTH]], absent: [SILENT],
    pauseMs: MINUTE_MS, note: SEVENTH_NOTE, actor: 'grace', at: at(BEGAN_MS) })
  const take = (document: FleetRollout, member: string, ms: number) =>
    takeTurn(document, member, { at: at(ms), boot: 'boot', from: 'r6' })
  const end = (document: FleetRollout, member: string, ms: number) =>
    finishTurn(document, member, { at: at(ms), state: 'succeeded', rollout: 7, to: 'r7' })
  const first = end(take(begun, FIRST_OUT, BEGAN_MS), FIRST_OUT, BEGAN_MS - TURN_MS)
  const crash = { group: 6, fingerprint: LAMP.fingerprint, text: `${LAMP.name}: ${LAMP.message}, in ${LAMP.culprit}` }
  const held = noteCrash(first, FIRST_OUT, { at: at(CRASHED_MS[0]), crash })
  const resumed = steerRollout(held, 'resume', { at: at(RESUMED_MS), actor: 'grace' })
  return end(take(take(resumed, SECOND, RESUMED_MS), THIRD, RESUMED_MS), SECOND, RESUMED_MS - TURN_MS)
}

function codeOf (release: string) {
  return { version: `1.4.${release.slice(1)}`, commit: hashOf(COMMITS[release]).slice(0, 10) }
}

function hostOf (member: string) {
  return `${member.slice(0, 5)}.example.com`
}

/** What this deck has on record, and what others have told. */
function eventsOf (history: Admin['history'], { rollout, at }: { rollout: FleetRollout, at: (ms: number) => string }) {
  const [blank] = history.page({ limit: 1 }).items
  const told = (member: string, when: string, fields: Partial<DeckEvent>) => ({ member,
    event: { ...blank, worker: null, slot: null, pid: null, cause: null, rollout: null, release: null, actor: null,
      code: null, signal: null, uptimeMs: null, message: null, detail: null, at: when, ...fields } })
  const note = `${SEVENTH_NOTE} (rollout 7 of the fleet)`
  const detail = { id: 7, kind: 'deploy', from: 'r6', to: 'r7', note, actor: 'grace' }
  const own7 = { cause: 'deploy' as const, rollout: 7, actor: 'grace' }
  const turns = Object.entries(rollout.turns).flatMap((
    [member, { startedAt, finishedAt }]
  ) => [
    ...startedAt ?
      [told(member, startedAt, { ...own7, type: 'rollout.started', message: note,
        detail: { ...detail, state: 'rolling' } })] :
      [],
    ...finishedAt ?
      [told(member, finishedAt, { ...own7, type: 'rollout.succeeded', detail: { ...detail, state: 'succeeded' } })] :
      []
  ])
  const moments = rollout.timeline.filter(({ type }) => !type.startsWith('turn-')).map(({ at, type, actor, message }) =>
    told(FIRST_OUT, at, { type: `fleet.rollout-${type}`, actor: actor ?? 'system',
      message: `rollout 7 of the fleet (deploy)${message ? `: ${message}` : ''}` })
  )
  const others = [...turns, ...moments,
    ...CRASHED_MS.map((ms, index) =>
      told(FIRST_OUT, at(ms), { type: 'worker.exited', cause: 'crash', worker: 34 + 4 * index, slot: 2, release: 'r7',
        code: 1, uptimeMs: 9000,
        message: `worker ${34 + 4 * index} (slot 2) exited with code 1: ${LAMP.name}: ${LAMP.message}` })
    ),
    told(OWN, at(3 * MINUTE_MS), { type: 'fleet.host-silent',
      message: `${SILENT} is silent: no report for 15 s. When last heard, it ran shop r6 (4 of 4 workers ready).`,
      detail: { member: SILENT } }),
    told(FOURTH, at(5 * HOUR_MS), { type: 'worker.exited', cause: 'crash', worker: 21, slot: 3, release: 'r4',
      signal: 'SIGABRT', uptimeMs: 18 * HOUR_MS, message: 'worker 21 (slot 3) was ended by SIGABRT' })]
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
    return [{ ...group, fingerprint: LAMP.fingerprint, kind: 'exception', errorName: LAMP.name, message: LAMP.message,
      culprit: LAMP.culprit, count: CRASHED_MS.length, firstSeenAt: at(CRASHED_MS[0] / MINUTE_MS),
      lastSeenAt: at(CRASHED_MS[1] / MINUTE_MS), firstRelease: 'r7', lastRelease: 'r7', isNewInRelease: true }]
  if (member === FOURTH)
    return [{ ...group, fingerprint: `v1:${'2'.repeat(32)}`, kind: 'heap-out-of-memory', errorName: null,
      message: 'worker 21 (slot 3) was ended by SIGABRT', count: 1, firstSeenAt: at(300), lastSeenAt: at(300),
      firstRelease: 'r4', lastRelease: 'r4', isNewInRelease: false }]
  return []
}
