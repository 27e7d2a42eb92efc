import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cachedMember, fetchMember, refreshMember } from '../../../server/fleet/page-member-cache.ts'
import { followFleetMember, fleetMemberModel } from '../../../server/fleet/page-member.ts'
import { powersOf } from '../../../server/dashboard/powers.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { aMember, createFakeFleet } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'

const NOW = Date.parse('2026-01-01T12:00:00.000Z')
const AT = '2026-01-01T11:00:00.000Z'
const OPERATOR = powersOf(fake({ role: 'operator' }))
const { render } = createViews()

const aWorker = (fields?: object) => ({ id: 3, slot: 1, pid: 4711, state: 'ready', release: 'r3', startedAt: AT,
  readyAt: AT, orphan: false, drifted: false, logSlot: 1, port: null, restarts: 0, crashLooping: false, retryAt: null,
  holds: null, keptUntil: null, finished: null, vitals: null, ...fields })

function startFleet ({ workers = { items: [aWorker()] } }: { workers?: unknown } = {}) {
  const answers = { workers, status: 200 }
  const paths: string[] = []
  const fleet = createFakeFleet({
    members: [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' }),
      aMember({ member: 'c-3', accept: 'read' }), aMember({ member: 'd-4', accept: 'nothing' }),
      aMember({ member: 'e-5', isSilent: true })],
    answer (member, { path }) {
      paths.push(`${member} ${path}`)
      return { status: answers.status, body: answers.workers }
    }
  })
  return { fleet, answers, paths }
}

test('all who look at a member ask it once, and again after a second or when something has been done', async () => {
  const { fleet, paths } = startFleet()
  const [one, other] = await Promise.all([fetchMember(fleet, 'b-2', NOW, 1000), fetchMember(fleet, 'b-2', NOW, 1000)])
  assert.deepEqual(paths.splice(0), ['b-2 /workers'])
  assert.equal(one, other)
  assert.equal(one.workers?.[0].badge.label, 'Ready')
  cachedMember(fleet, 'b-2', NOW + 999)
  assert.deepEqual(paths, [])
  await fetchMember(fleet, 'b-2', NOW + 1000, 1000)
  assert.equal(paths.splice(0).length, 1)
  refreshMember(fleet, 'b-2')
  await fetchMember(fleet, 'b-2', NOW + 1001, 1000)
  assert.equal(paths.splice(0).length, 1)
  await fetchMember(fleet, 'b-2', NOW - 3_600_000, 1000)
  assert.equal(paths.length, 1, 'a clock that goes back stops nothing')
})

test('what a member refuses, or says as none would, is told, and what was known before stays', async () => {
  const { fleet, answers } = startFleet()
  await fetchMember(fleet, 'b-2', NOW, 1000)
  answers.status = 403
  answers.workers = { code: 'forbidden', detail: 'b-2: expected fleet.accept "read" or "operate", received "nothing"' }
  const refused = await fetchMember(fleet, 'b-2', NOW + 1000, 1000)
  assert.match(refused.problem ?? '', /expected fleet\.accept/)
  assert.equal(refused.workers?.length, 1)
  answers.status = 200
  for (const strange of [null, [], { items: 3 }, { items: [{ ...aWorker(), slot: 1e9 }] }, {
    items: [{ ...aWorker(), startedAt: '"><script>' }]
  }]) {
    answers.workers = strange
    refreshMember(fleet, 'b-2')
    assert.match((await fetchMember(fleet, 'b-2', NOW + 1000, 1000)).problem ?? '', /cannot read/,
      JSON.stringify(strange))
  }
  const model = await fleetMemberModel({ deck: { fleet }, id: 'b-2', now: () => NOW + 1000 })
  assert.match(render('pages/fleet-member', { can: OPERATOR, ...model }),
    /that this version cannot read\. The figures below are older\./)
})

test('a member that does not answer is not waited for', async () => {
  const { fleet } = startFleet()
  fleet.obtain = () => new Promise(() => {})
  const inside = await fetchMember(fleet, 'b-2', NOW, 10)
  assert.deepEqual(inside, { workers: null, problem: null })
})

test('those alone are asked who let themselves be, and have controls only where they take orders', async () => {
  const { fleet, paths } = startFleet()
  const controls = /data-dialog="dialog-member-kill-worker"/
  for (const [id, isAsked, hasControls] of [['a-1', false, false], ['b-2', true, true], ['c-3', true, false], ['d-4',
    false, false], ['e-5', false, false]] as const)
  {
    paths.length = 0
    const asked = { deck: { fleet }, id, now: () => NOW, can: OPERATOR }
    const html = render('pages/fleet-member', { can: OPERATOR, ...await fleetMemberModel(asked) })
    assert.equal(paths.length > 0, isAsked, id)
    assert.equal(controls.test(html), hasControls, id)
    const live = ['fleet-member', 'fleet-inside'].map((id) =>
      render(`partials/${id}`, { can: OPERATOR, ...followFleetMember(asked)() })
    ).join('')
    assert.equal(controls.test(live), hasControls, id)
    assert.doesNotMatch(render('pages/fleet-member', { can: powersOf(null), ...await fleetMemberModel(asked) }),
      /data-dialog|dialog-member/)
  }
})

test('whatever a member has written is text on its page', async () => {
  const evil = '<img src=x onerror=alert(1)>\u202E\u001b]0;x\u0007'
  const { fleet } = startFleet({
    workers: {
      items: [
        aWorker({ state: evil,
          finished: { at: AT, worker: 3, release: 'r1', cause: evil, code: null, succeeded: false },
          vitals: { rssBytes: evil } })
      ]
    }
  })
  const html = render('pages/fleet-member', { can: OPERATOR,
    ...await fleetMemberModel({ deck: { fleet }, id: 'b-2', now: () => NOW }) })
  for (const each of ['<img', '\u202E', '\u001b']) assert.ok(!html.includes(each))
  assert.equal(html.match(/&lt;img/g)?.length, 1)
})

test('the figures of a member are those of the workers below them', async () => {
  const vitals = [{ requestsPerSecond: 40, latencyP99Ms: 27 }, { requestsPerSecond: 2, latencyP99Ms: 387 }]
  const { fleet } = startFleet({
    workers: { items: vitals.map((each) => aWorker({ vitals: { ...each, rssBytes: 1, cpuPercent: 1 } })) }
  })
  const html = render('pages/fleet-member', { can: OPERATOR,
    ...await fleetMemberModel({ deck: { fleet }, id: 'b-2', now: () => NOW }) })
  for (const [key, figure] of [['r', '42'], ['l', '387 ms']])
    assert.match(html, new RegExp(`data-figure="b-2\\.${key}">${figure}<`))
})

test('the page of a member says what an old worker is kept for, and until when', async () => {
  const holds = { requests: 0, transfers: 0, webSockets: 3, eventStreams: 1, connections: 0, sessions: 0 }
  const { fleet } = startFleet({
    workers: { items: [aWorker({ state: 'draining', holds, keptUntil: '2026-01-01T14:00:00.000Z' })] }
  })
  const html = render('pages/fleet-member', { can: OPERATOR,
    ...await fleetMemberModel({ deck: { fleet }, id: 'b-2', now: () => NOW }) })
  assert.match(html, /Kept<\/span><span class="retry held">3 WebSockets and 1 event stream, closed <time[^>]*>in 2 h/)
})
