import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { fleetCommand } from '../../server/fleet/cli.ts'
import { rawRequest, startAdmin } from '../support/admin.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet } from '../support/fake-fleet.ts'
import { fake } from '../support/fake.ts'

const MEMBERS = [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' })]
const AT = '2026-01-01T12:00:00.000Z'
const FORM = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin',
  accept: 'application/problem+json' }

async function start (t: TestContext, given?: Parameters<typeof createFakeFleet>[0]) {
  const admin = await startAdmin(t)
  const fleet = createFakeFleet({ members: MEMBERS, ...given })
  admin.deck.fleet = fleet
  return { admin, fleet }
}

test('the last rollouts of the fleet are listed without the turns of all members, and each of them is there whole', async (t) => {
  const over = afterTurnsOf(aRollout(['a-1', 'b-2'], { id: 6 }), 'a-1', 'b-2')
  const { admin, fleet } = await start(t, { rollout: afterTurnsOf(aRollout(['a-1', 'b-2']), 'a-1'), past: [over] })
  const { body } = await admin.api('get', '/api/v1/fleet/rollouts').expect(200)
  assert.deepEqual(body.items.map(({ id, state, progress }) => ({ id, state, progress })), [{ id: 7, state: 'running',
    progress: { total: 2, done: 1, failed: 0 } }, { id: 6, state: 'succeeded',
    progress: { total: 2, done: 2, failed: 0 } }])
  assert.equal('turns' in body.items[0], false)
  assert.equal((await admin.api('get', '/api/v1/fleet/rollouts/6').expect(200)).body.turns['b-2'].state, 'succeeded')
  assert.equal((await admin.api('get', '/api/v1/fleet/rollouts/5').expect(404)).body.code, 'not-found')
  fleet.set({ nats: { isConnected: false, since: over.startedAt, server: null, problem: 'gone' } })
  assert.equal((await admin.api('get', '/api/v1/fleet/rollouts/5').expect(503)).body.code, 'fleet-away')
  admin.deck.fleet = null
  assert.equal((await admin.api('get', '/api/v1/fleet/rollouts').expect(409)).body.code, 'no-fleet')
})

test('the command line and scripts are told too who is behind, who is silent, and when each was heard', async (t) => {
  const { admin } = await start(t, {
    members: [...MEMBERS, aMember({ member: 'c-3', ageMs: 3000 }),
      aMember({ member: 'd-4', isSilent: true, ageMs: 90_000, code: { version: '1.3.0', commit: null } })]
  })
  const { body: { members } } = await admin.api('get', '/api/v1/fleet').expect(200)
  assert.deepEqual(members.map(({ member, mark }) => [member, mark?.isBehind ?? false]), [['a-1', false], ['b-2',
    false], ['c-3', false], ['d-4', true]])
  const printed: string[] = []
  const api = { get: async () => (await admin.api('get', '/api/v1/fleet')).body }
  await fleetCommand(fake({ api, options: {}, answer (_: unknown, textOf: () => string) {
    printed.push(textOf())
  } }))
  assert.match(printed[0], /^c-3 +All 4 workers are ready .* r3 .* 3 s ago/m)
  assert.match(printed[0], /^d-4 +silent for 1 min 30 s .* r3 \(behind\) /m)
})

test('whoever has looked at one rollout does not steer the next one', async (t) => {
  const { admin, fleet } = await start(t, { rollout: aRollout(['a-1', 'b-2'], { id: 8 }) })
  const cookie = await admin.signIn()
  const post = (action: string, body: string) =>
    rawRequest(admin, { method: 'POST', path: `/actions/${action}`, headers: { ...FORM, cookie }, body })
  const late = await post('pauseFleetRollout', 'seen=7')
  assert.deepEqual([late.status, late.json().detail], [409, 'Rollout 7 of the fleet is over: rollout 8 is running'])
  assert.equal((await post('pauseFleetRollout', 'seen=x')).status, 409)
  assert.equal((await post('startFleetRollout', 'kind=deploy&batch=none')).status, 422)
  assert.equal((await post('startFleetRollout', 'kind=deploy&batch=1')).json().code, 'rollout-running')
  assert.deepEqual(fleet.asked, [])
  assert.equal((await post('pauseFleetRollout', 'seen=8')).status, 204)
  assert.deepEqual(fleet.asked, [{ order: 'pause', actor: 'the owner\'s token' }])
})

test('a form that another host is to do is refused here to whoever may not do it, or has not said it well', async (t) => {
  const { admin, fleet } = await start(t)
  const post = async (cookie: string, names: string, body: string) => {
    const { status } = await rawRequest(admin, { method: 'POST', path: `/actions/${names}`,
      headers: { ...FORM, cookie }, body })
    return status
  }
  const { body: { url } } = await admin.api('post', '/api/v1/sign-in-links').send({ name: 'eve', role: 'viewer' })
  const { pathname, search } = new URL(url)
  const viewer = await admin.stranger().get(pathname + search)
  const cookie = String(viewer.headers['set-cookie']?.[0]).split(';')[0]
  assert.equal(await post(cookie, 'restartWorker', 'member=b-2&id=1'), 403)
  const owner = await admin.signIn()
  assert.equal(await post(owner, 'sendMessage', 'member=b-2&type=x&data={no'), 422)
  assert.deepEqual(fleet.asked, [])
  assert.equal(await post(owner, 'restartWorker', 'member=b-2&id=1'), 204)
  assert.equal(fleet.asked.length, 1)
})

test('pages of the fleet that are not there say so', async (t) => {
  const { admin } = await start(t)
  const cookie = await admin.signIn()
  const statusOf = async (path: string) =>
    (await rawRequest(admin, { path, headers: { cookie, accept: 'text/html' } })).status
  assert.deepEqual(
    await Promise.all(
      ['/fleet', '/fleet?health=no', '/fleet?page=0', '/fleet/rollouts/9', '/fleet/rollouts/x', '/fleet/members/a-1',
        '/fleet/members/nobody', '/fleet/members/%2e%2e'].map(statusOf)
    ),
    [200, 400, 400, 404, 404, 200, 404, 404]
  )
  admin.deck.fleet = null
  assert.deepEqual(await Promise.all(['/fleet', '/fleet/rollouts/1', '/fleet/members/a-1'].map(statusOf)), [200, 409,
    409])
})

test('the lists of an app offer a choice of hosts where it is in a fleet, and what is selected is settled on all of them', async (t) => {
  const fingerprints = ['1', '2'].map((digit) => `v1:${digit.repeat(32)}`)
  const group = (fingerprint: string, index: number) => ({ id: index + 1, fingerprint, state: 'open', kind: 'exception',
    cause: 'crash', errorName: 'TypeError', message: `crash ${index}`, culprit: null, count: 1, firstSeenAt: AT,
    lastSeenAt: AT, firstRelease: 'r1', lastRelease: 'r1', lastCrash: 1, stateChangedAt: null, stateChangedBy: null,
    goneSince: null, returnedAt: null, isNewInRelease: false, hasReturned: false })
  const { admin, fleet } = await start(t, {
    answer: (_member, { path }) => ({ status: 200, body: { next: null, items: path.startsWith('/crashes')
      ? fingerprints.map(group).filter(({ fingerprint }) =>
        !path.includes('fingerprint') || path.includes(encodeURIComponent(fingerprint))
      )
      : [{ slot: 1, stream: 'stdout', text: 'hello', arrivedAt: AT, place: '1o0' }] } })
  })
  const cookie = await admin.signIn()
  const pageOf = async (path: string) =>
    (await rawRequest(admin, { path, headers: { cookie, accept: 'text/html' } })).text
  for (const list of ['crashes', 'history', 'logs']) {
    assert.match(await pageOf(`/${list}`), /<select name="member"[^>]*>\s*<option value=""[^>]*>This one/, list)
    assert.match(await pageOf(`/${list}?member=*`), /<option value="\*" selected>All<.*<option value="b-2">/s, list)
  }
  const page = await pageOf('/crashes?member=*')
  for (const fingerprint of fingerprints)
    assert.ok(page.includes(`name="fingerprint" value="${fingerprint}" form="crash-picks"`), fingerprint)
  assert.match(page, /action="\/actions\/resolveFleetCrash,muteFleetCrash,reopenFleetCrash"/)
  const { status } = await rawRequest(admin, { method: 'POST', headers: { ...FORM, cookie },
    path: '/actions/resolveFleetCrash,muteFleetCrash,reopenFleetCrash',
    body: `operation=muteFleetCrash&${fingerprints.map((each) => `fingerprint=${each}`).join('&')}` })
  assert.deepEqual([status, fleet.asked.map(({ member, path }) => `${member} ${path}`).sort()], [204,
    ['a-1', 'b-2'].flatMap((member) => [0, 1].map((id) => `${member} /crashes/${id + 1}/mute`))])
  admin.deck.fleet = null
  for (const list of ['crashes', 'history', 'logs'])
    assert.doesNotMatch(await pageOf(`/${list}`), /name="member"/, list)
})

test('whoever deploys to all hosts reads first which host gets what when, and which is left out; others may not ask', async (t) => {
  const members = [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2' }),
    aMember({ member: 'web-3', isSilent: true, ageMs: 65_000 })]
  const commit = { commit: '4be1a4b', at: '2026-01-01T00:00:00.000Z', author: 'ada', subject: 'faster totals' }
  const answer = (member: string) =>
    member === 'web-1'
      ? { status: 200,
        body: { release: { id: 'r4', isNew: true, package: { name: 'shop', version: '1.5.0' }, git: null },
          commits: { added: { items: [commit, commit], hasMore: false }, removed: { items: [], hasMore: false } },
          files: { changed: 2, added: 1, removed: 0 }, refusals: [] } }
      : { status: 200,
        body: { release: null, commits: null, files: null,
          refusals: [{ code: 'not-found', message: '<b>app.js</b> is missing' }] } }
  const admin = await startAdmin(t)
  const fleet = createFakeFleet({ members, answer })
  admin.deck.fleet = fleet
  const { body } = await admin.api('post', '/api/v1/fleet/rollout/preview').send({ kind: 'deploy', canary: 'web-2' })
    .expect(200)
  assert.deepEqual(body.batches.map((batch) => batch.map(({ member, becomes, problem }) => [member, becomes, problem])),
    [[['web-2', null, '<b>app.js</b> is missing']], [['web-1', 'r4, new (1.5.0, 2 new commits, 3 files differ)',
      null]]])
  assert.deepEqual([body.leftOut, body.refusals], [[{ member: 'web-3', reason: 'silent for 1 min 05 s' }], []])
  const cookie = await admin.signIn()
  const pageOf = async (path: string) =>
    (await rawRequest(admin, { path, headers: { cookie, accept: 'text/html' } })).text
  const text = await pageOf('/fleet/preview?kind=deploy&batch=1&canary=web-2&note=')
  assert.match(text, /Left out: <bdi>web-3 \(silent for 1 min 05 s\)/)
  assert.match(text, /2 members, one after the other/)
  assert.match(text, /&lt;b&gt;app\.js&lt;\/b&gt; is missing/)
  assert.match(await pageOf('/fleet/preview?kind=deploy&batch=x'), /batch: expected/)
  assert.ok(!fleet.asked.some(({ order }) => order === 'begin'))
  admin.deck.fleet = createFakeFleet()
  assert.match(await pageOf('/fleet/preview?kind=rollback&batch=1'), /becomes<\/span> <bdi>its previous release/)
  const { token } = (await admin.api('post', '/api/v1/tokens').send({ name: 'ci', role: 'viewer' }).expect(201)).body
  assert.equal(
    (await rawRequest(admin, { path: '/fleet/preview?kind=deploy',
      headers: { authorization: `Bearer ${token}`, accept: 'text/html' } })).status,
    403
  )
})

test('whoever forgets a host that will not come back is on record, by API and page; a viewer, or a role for some apps, may not', async (t) => {
  const { admin, fleet } = await start(t, {
    members: [...MEMBERS, ...['c-3', 'd-4'].map((member) => aMember({ member, isSilent: true, ageMs: 90_000 }))]
  })
  const cookie = await admin.signIn()
  const page = await rawRequest(admin, { path: '/fleet/members/c-3', headers: { cookie, accept: 'text/html' } })
  assert.match(page.text, /action="\/actions\/forgetMember".*name="member" value="c-3"/)
  assert.doesNotMatch(
    (await rawRequest(admin, { path: '/fleet/members/b-2', headers: { cookie, accept: 'text/html' } })).text,
    /forgetMember/
  )
  const { token } = (await admin.api('post', '/api/v1/tokens').send({ name: 'ci', role: 'viewer' }).expect(201)).body
  await admin.stranger().delete('/api/v1/fleet/members/c-3').set('authorization', `Bearer ${token}`).expect(403)
  assert.deepEqual((await admin.api('delete', '/api/v1/fleet/members/c-3').expect(200)).body, { member: 'c-3' })
  const sent = await rawRequest(admin, { method: 'POST', path: '/actions/forgetMember',
    headers: { ...FORM, accept: 'text/html', cookie }, body: 'member=d-4' })
  assert.deepEqual([sent.status, sent.headers.location], [303, '/fleet'])
  assert.deepEqual(fleet.asked,
    ['c-3', 'd-4'].map((member) => ({ order: 'forget', member, actor: 'the owner\'s token' })))
})
