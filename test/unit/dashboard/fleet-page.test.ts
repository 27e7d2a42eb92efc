import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createObservations } from '../../../server/fleet/page-observations.ts'
import { ownTurn } from '../../../server/fleet/page-own-turn.ts'
import { holdRollout } from '../../../server/fleet/rollout.ts'
import { fleetModel, followFleet } from '../../../server/fleet/page.ts'
import { fleetMemberModel } from '../../../server/fleet/page-member.ts'
import { followFleetRollout, fleetRolloutModel } from '../../../server/fleet/page-rollout.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet, failedTurnOf, inTurnOf } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'
import type { FleetRollout } from '../../../server/fleet/document.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'
import type { Seen } from '../../support/event-log.ts'

const NOW = Date.parse('2026-01-01T13:00:00.000Z')
const OPERATOR = fake<Powers>({ operate: true, administer: false, role: 'operator', name: null })
const { render } = createViews()

const MEMBERS = [aMember({ member: 'a-1', isOwn: true, labels: { zone: 'a' } }),
  aMember({ member: 'b-2', labels: { zone: 'b' }, isSilent: true, ageMs: 90_000 }),
  aMember({ member: 'c-3', labels: { zone: 'a' }, health: { tone: 'bad', text: 'Slot 1 is crash-looping' },
    workers: { ready: 3, desired: 4 }, openCrashes: 2 }),
  aMember({ member: 'd-4', labels: { zone: 'b' }, code: { version: '1.4.1', commit: null }, version: '0.0.9' })]

type Model = Seen<Extract<Awaited<ReturnType<typeof fleetModel>>, { rows: unknown }>>

const modelOf = async (given: Parameters<typeof createFakeFleet>[0] = { members: MEMBERS }, query: string = '',
  now: () => number = () => NOW) =>
  await fleetModel({ deck: { fleet: createFakeFleet(given) }, params: new URLSearchParams(query), now }) as Model
const namesOf = ({ rows }: Model) => rows.map(({ member }) => member)

test('one sentence says how many are silent, unwell and behind, and the first of them are named', async () => {
  const model = await modelOf()
  assert.deepEqual(model.health, { tone: 'bad', text: '4 members: 1 silent, 1 not well, 1 behind' })
  assert.deepEqual(model.troubles.items.map(({ member }) => member), ['b-2', 'c-3'])
  assert.deepEqual(namesOf(model), ['b-2', 'c-3', 'a-1', 'd-4'])
  assert.deepEqual(model.tabs.map(({ label, count }) => `${label} ${count}`), ['All 4', 'Silent 1', 'Not well 1',
    'Behind 1'])
  assert.deepEqual([model.totals.there, model.totals.workers, model.totals.openCrashes, model.totals.otherVersions], [3,
    { ready: 11, desired: 12 }, 2, 1])
  assert.equal((await modelOf({ members: MEMBERS.slice(0, 1) })).health.text, 'The one member is well')
  assert.deepEqual((await modelOf({ members: [MEMBERS[0], MEMBERS[3]] })).health, { tone: 'warn',
    text: 'All 2 members are well, 1 behind' })
  const rollout = failedTurnOf(aRollout(['a-1']), 'a-1', 'no')
  assert.deepEqual((await modelOf({ members: MEMBERS.slice(0, 1), rollout })).health, { tone: 'bad',
    text: `Rollout ${rollout.id} is held. The one member is well` })
  assert.equal((await modelOf({ members: MEMBERS, rollout })).health.text,
    `Rollout ${rollout.id} is held. 4 members: 1 silent, 1 not well, 1 behind`)
  const behind = MEMBERS.map((member) => ({ ...member, code: MEMBERS[3].code, release: MEMBERS[3].release }))
  assert.equal((await modelOf({ members: [MEMBERS[0], behind[1]] })).health.text, '2 members: 1 silent',
    'which is behind, too')
  assert.deepEqual(model.totals.tones.map(({ text }) => text), ['2 well', '2 in trouble'])
})

test('members are found by health, label and name, and the address says what is shown', async () => {
  assert.deepEqual(namesOf(await modelOf(undefined, 'health=silent')), ['b-2'])
  assert.deepEqual(namesOf(await modelOf(undefined, 'health=behind')), ['d-4'])
  assert.deepEqual(namesOf(await modelOf(undefined, 'label=zone:a')), ['c-3', 'a-1'])
  assert.deepEqual(namesOf(await modelOf(undefined, 'q=D-4')), ['d-4'])
  assert.deepEqual(namesOf(await modelOf(undefined, 'q=C.EXAMPLE')), ['c-3'])
  assert.equal((await modelOf(undefined, 'health=all&label=zone:a&q=&page=')).canonicalUrl, '/fleet?label=zone:a')
  const refused = await modelOf(undefined, 'health=good')
  assert.equal(refused.status, 400)
  assert.match(refused.problem.message, /health: expected one of all, silent, ill, behind/)
})

test('where NATS is away nobody is called sick for it, and nothing can be begun or steered', async () => {
  const rollout = inTurnOf(aRollout(['a-1', 'b-2']), 'a-1')
  const model = await modelOf({ members: MEMBERS.map((member) => ({ ...member, isSilent: true })), rollout,
    nats: { isConnected: false, problem: 'the connection is lost' } })
  assert.deepEqual(model.health, { tone: 'warn', text: 'This host is cut off from the fleet' })
  assert.deepEqual(model.troubles.items, [])
  assert.deepEqual(model.rows.map(({ tone }) => tone), ['ok', 'idle', 'idle', 'idle'])
  assert.equal(model.blocked, 'The fleet is out of reach.')
  assert.deepEqual(model.rollout.controls, [])
})

test('five hundred members come in pages, whoever needs somebody on the first', async () => {
  const members = Array.from({ length: 500 },
    (_, index) =>
      aMember({ member: `host-${String(index).padStart(3, '0')}`, isOwn: index === 0, isSilent: index === 499 }))
  const first = await modelOf({ members })
  assert.equal(first.rows.length, 100)
  assert.equal(first.rows[0].member, 'host-499')
  assert.deepEqual([first.links.previous, first.links.next], [null, '/fleet?page=2'])
  const last = await modelOf({ members }, 'page=5')
  assert.deepEqual([last.rows.length, last.links.previous, last.links.next], [100, '/fleet?page=4', null])
  assert.equal((await modelOf({ members }, 'page=99')).canonicalUrl, '/fleet?page=5')
})

test('a NATS server that does not answer is not waited for', async () => {
  const fleet = createFakeFleet({ members: MEMBERS })
  const model = await fleetModel({ deck: { fleet: { ...fleet, look: () => new Promise(() => {}), past: async () => {
    throw new Error('no')
  } } }, params: new URLSearchParams(), now: () => NOW })
  assert.equal((model as Model).rows.length, 4)
})

test('a rollout is shown at once, and members once a second', () => {
  let now = NOW
  const fleet = createFakeFleet({ members: MEMBERS, rollout: aRollout(['a-1', 'c-3']) })
  const look = followFleet({ deck: { fleet }, params: new URLSearchParams(), now: () => now, can: OPERATOR })
  assert.equal(look()?.fragments.length, 7)
  fleet.set({ members: MEMBERS.slice(0, 2) })
  assert.equal(look(), null)
  fleet.set({ rollout: inTurnOf(aRollout(['a-1', 'c-3']), 'a-1') })
  assert.deepEqual(look()?.fragments, ['fleet-actions', 'fleet-rollout'])
  now += 1000
  assert.equal(look()?.fragments.length, 7)
})

test('a silent member has been heard at one moment', () => {
  const memory = createObservations({ past: async () => [] })
  const at = (seconds: number, ageMs: number) =>
    memory.note([aMember({ member: 'a', isSilent: true, ageMs })], NOW + seconds * 1000)
  at(310, 10_000)
  const heard = memory.heardAt('a')
  at(311, 10_700)
  assert.equal(memory.heardAt('a'), heard)
  at(320, 1000)
  assert.notEqual(memory.heardAt('a'), heard)
})

test('a deck that is alone says what a fleet is', async () => {
  const model = await fleetModel({ deck: { fleet: null }, params: new URLSearchParams(), now: () => NOW })
  assert.match(render('pages/fleet', model), /This host is in no fleet.*fleet\.servers/s)
})

test('whatever members and operators have written is text on the pages', async () => {
  const evil = '<img src=x onerror=alert(1)>\u202E'
  const members = [aMember({ member: 'a-1', isOwn: true }),
    aMember({ member: 'b-2', host: evil, app: evil, version: evil, release: evil, code: { version: evil, commit: evil },
      labels: { zone: evil }, health: { tone: 'bad', text: evil },
      rollout: { id: 1, kind: evil, state: evil, replaced: 1, total: 0 }, url: 'https://x.example/"><script>' })]
  const rollout = failedTurnOf(aRollout(['a-1', 'b-2'], { note: evil, actor: evil }), 'b-2', evil)
  const fleet = createFakeFleet({ members, rollout, past: [{ ...afterTurnsOf(rollout, 'a-1'), id: 6 }], problem: evil,
    nats: { problem: evil, server: evil } })
  const asked = { deck: { fleet }, params: new URLSearchParams(), now: () => NOW, can: OPERATOR }
  for (const [page, model] of [['fleet', await fleetModel(asked)], ['fleet-rollout',
    await fleetRolloutModel({ ...asked, id: '7' })], ['fleet-member',
    await fleetMemberModel({ ...asked, id: 'b-2' })]] as const)
  {
    const html = render(`pages/${page}`, { can: OPERATOR, ...model })
    assert.doesNotMatch(html, /<img|"><script|\u202E/, page)
    assert.match(html, /&lt;img/, page)
  }
})

test('one that was held and followed by another awaits nobody', async () => {
  const held = failedTurnOf(aRollout(['a-1']), 'a-1', 'it crashed')
  assert.equal(held.state, 'held')
  const fleet = createFakeFleet({ members: MEMBERS, rollout: aRollout(['a-1'], { id: 8 }), past: [held] })
  const asked = { deck: { fleet }, now: () => NOW, can: OPERATOR }
  const { rollout } = await fleetRolloutModel({ ...asked, id: '7' })
  assert.deepEqual([rollout.stateView.label, rollout.stateView.isOver, rollout.controls], ['held', true, []])
})

test('one rollout stands still once it is over, and whoever names none that is known is told so', async () => {
  const over = afterTurnsOf(aRollout(['a-1']), 'a-1')
  const fleet = createFakeFleet({ members: MEMBERS, rollout: aRollout(['a-1'], { id: 8 }), past: [over] })
  const asked = { deck: { fleet }, now: () => NOW, can: OPERATOR }
  assert.equal((await fleetRolloutModel({ ...asked, id: '7' })).rollout.state, 'succeeded')
  assert.equal(followFleetRollout({ ...asked, id: '7' })(), null)
  assert.equal(followFleetRollout({ ...asked, id: '8' })()?.rollout.state, 'running')
  await assert.rejects(fleetRolloutModel({ ...asked, id: '9' }), { code: 'not-found' })
  await assert.rejects(fleetMemberModel({ ...asked, id: 'nobody' }), { code: 'not-found' })
  fleet.set({ nats: { ...fleet.status().nats, isConnected: false } })
  await assert.rejects(fleetRolloutModel({ ...asked, id: '9' }), { code: 'fleet-away' })
})

test('the overview of an app says how far a rollout of the fleet is, and where its own host is in it, until it is over', () => {
  const rollout = inTurnOf(afterTurnsOf(aRollout(['c-3', 'd-4', 'a-1'], { note: 'prices' }), 'c-3'), 'd-4')
  const seenBy = (member: string, shown: FleetRollout = rollout) =>
    ownTurn(createFakeFleet({ members: [aMember({ member, isOwn: true }), ...MEMBERS], rollout: shown }))
  assert.deepEqual(['a-1', 'd-4', 'c-3', 'b-2'].map((member) => seenBy(member)?.where), ['this host waits for its turn',
    'this host is in its turn now', 'this host is done', 'this host is left out'])
  const model = seenBy('a-1')
  const html = render('partials/fleet-turn', { fleetTurn: model })
  assert.match(html, /href="\/fleet">Rollout 7 of the fleet is running: this host waits for its turn</)
  assert.match(html, /deploy by ada: 1 of 3 done.*“prices”/)
  const held = holdRollout(rollout, { at: rollout.startedAt, reason: 'late' })
  assert.deepEqual([seenBy('a-1', held)?.title, seenBy('a-1', held)?.tone], ['Rollout 7 of the fleet is held', 'bad'])
  assert.equal(seenBy('a-1', afterTurnsOf(rollout, 'd-4', 'a-1')), null)
  assert.match(render('partials/fleet-turn', { fleetTurn: ownTurn(null) }), /id="fleet-turn"[^>]* hidden>/)
})
