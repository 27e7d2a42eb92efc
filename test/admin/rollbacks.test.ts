import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { followPage } from '../../server/dashboard/follow-page.ts'
import { PAGES, type Sources } from '../../server/dashboard/pages.ts'
import { createViews } from '../../server/dashboard/views.ts'
import { startAdmin } from '../support/admin.ts'
import { fake } from '../support/fake.ts'

/** `t`: somebody who looks at r1, with r3 to go to */
async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  const { items } = admin.deck.releases
  items.push({ ...items[0], id: 'r3', isLastGood: true, package: { name: 'told', version: '1.1.0' } })
  return { admin, visit: (path: string) => admin.visit(path) }
}

test('who is about to roll back sees from what to what, what changes, and what crashed there', async (t) => {
  const { admin, visit } = await setUp(t)
  admin.history.crashes.record('fingerprint',
    fake({ at: '2026-01-01T00:00:00.000Z', kind: 'exception', cause: 'crash', errorName: 'TypeError',
      errorMessage: 'no <total>', release: 'r3' }), { culprit: null })
  const { status, text } = await visit('/releases/r3/rollback')
  const said = text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
  assert.equal(status, 200)
  assert.match(said,
    /Redeploy r3\? .* r1 r3 Package told 1\.2\.3 told 1\.1\.0 .*variables: LEVEL Files: 1 changed changed app\.js Removed commits 8989898989 Slower totals Ada.*Crashes on r3 TypeError: no &lt;total&gt;/)
  assert.match(text, /name="seen" value="0"/)
  assert.equal((await visit('/releases/r9/rollback')).status, 404)
})

test('a rollback is refused where another rollout has begun since it was compared', async (t) => {
  const { admin } = await setUp(t)
  const rollBack = (fields: Record<string, string>) => admin.post('startRollout', fields)
  const late = await rollBack({ kind: 'rollback', release: 'r3', seen: '7' })
  assert.deepEqual([late.status, late.json().code, admin.deck.dispatched], [412, 'precondition-failed', []])
  assert.equal(late.json().change, 'Somebody has started a rollout since you opened this')
  assert.equal((await rollBack({ kind: 'rollback', release: 'r3', seen: '0', note: 'why' })).status, 204)
  assert.deepEqual(admin.deck.dispatched, [{ type: 'rollout', kind: 'rollback', release: 'r3', note: 'why',
    actor: 'the owner\'s token', client: 'dashboard' }])
})

test('a release says what it is by now, leads to what came of it, and offers the way back while it runs', async (t) => {
  const { admin, visit } = await setUp(t)
  const [running] = admin.deck.releases.items
  admin.deck.releases.items.push({ ...running, id: 'r4', inUse: false, outcome: 'failed', servedAt: null, rollout: 7,
    changed: { ...running.changed, from: 'r3' } })
  const steps = [{ slot: 1, state: 'failed', oldWorker: 1, newWorker: 3, startedAt: running.createdAt,
    finishedAt: running.createdAt }]
  const detail = { id: 7, kind: 'deploy', state: 'failed', from: 'r1', to: 'r4', actor: 'ada', note: null,
    startedAt: running.createdAt, finishedAt: running.createdAt, done: true, reason: 'worker 3 <b>died</b>', steps,
    progress: { total: 2, replaced: 0 } }
  admin.deck.events.publish({ type: 'rollout.failed', rollout: 7, actor: 'ada', message: detail.reason, detail })
  const [current, before, failed] = await Promise.all(['/releases/r1', '/releases/r3', '/releases/r4'].map(visit))
  assert.match(current.text, /runs now[^]*No crashes on it\.[^]*id="roll-back-to-r3"/)
  assert.doesNotMatch(current.text, /run it\./, 'which its mark has said')
  admin.deck.set({
    workers: admin.deck.snapshot().workers.map((worker, index) => index === 0 ? { ...worker, release: 'r3' } : worker)
  })
  assert.match((await visit('/releases/r1')).text, /1 of 2 workers runs it\./)
  assert.match(before.text,
    /No crashes on it\.[^]*id="roll-back-to-r3"[^]*It has served before\. A rollback brings it back/)
  assert.match(failed.text,
    /Worker 3 &lt;b&gt;died&lt;\/b&gt;\.<[^]*href="\/rollouts\/7">See what happened<[^]*r1 runs\. Correct the code/)
  assert.match(failed.text, /href="\/releases\/r4\/compare\?from=r3">Compare<[^]*Deploy of r4 failed/)
  assert.doesNotMatch(failed.text, /Its deploy failed/, 'its mark has said it')
  assert.match(failed.text, /id="roll-back-to-r4"[^>]*>Redeploy r4</)
  for (const id of ['release-crashes', 'release-rollouts'])
    assert.match(current.text, new RegExp(`id="${id}" hidden`), 'nothing is to be seen there')
  assert.match(current.text, /<code class="mono">0123456789[0-9a-f]{30}<\/code><button[^>]* data-copy /)
})

test('a release says what held the memory of its workers, how much for 1,000 requests, and since which release', async (t) => {
  const { admin, visit } = await setUp(t)
  assert.doesNotMatch((await visit('/releases/r3')).text, /What held its memory/)
  const holder = { name: 'shop.js: <b>sessions', className: 'Object', path: ['sessions'], count: 12_000, bytes: 120e6,
    bytesPer1000Requests: 10e6, file: '/srv/shop.js' }
  const publish = (detail: object) =>
    admin.deck.events.publish({ type: 'memory.examined', worker: 1, slot: 1, release: 'r3', actor: 'system',
      message: 'told', detail })
  publish({ heapBytes: 150e6, holders: [holder], sinceRelease: 'r1' })
  const { id } = admin.history.page({ type: 'memory.examined', limit: 1 }).items[0]
  publish({ error: 'the worker ended before its heap was written' })
  const said = (await visit('/releases/r3')).text.replace(/\s+/g, ' ')
  assert.ok(
    said.includes(`<a class="feed-text" href="/history/${id}">114 MB at <bdi>shop.js: &lt;b&gt;sessions</bdi></a>`),
    said
  )
  assert.match(said, /9\.5 MB per 1,000 requests · most since <a href="\/releases\/r1">r1<\/a> · 12,000 objects/)
  assert.doesNotMatch((await visit('/releases/r1')).text, /What held its memory/)
})

test('the page of a release follows the cluster: once another one runs, it no longer counts as current', async (t) => {
  const { admin: { deck, history } } = await setUp(t)
  const sources = fake<Sources>({ deck, history, now: () => 0, can: { operate: true } })
  const followed = followPage(PAGES, { views: createViews(), sources, frame: () => ({}) },
    new URL('http://localhost/releases/r1'))
  const head = () => followed.render().find(({ id }) => id === 'release-head')?.still ?? ''
  assert.match(head(), /runs now/)
  deck.set({ release: { ...deck.snapshot().release, id: 'r3' },
    workers: deck.snapshot().workers.map((worker) => ({ ...worker, release: 'r3' })) })
  assert.doesNotMatch(head(), /runs now/)
  assert.match(head(), /id="roll-back-to-r1"[^]*It has served before/)
})

test('a deploy that failed by a figure is told in few words, with the figure of both sides, its limit and its option', async (t) => {
  const { admin, visit } = await setUp(t)
  const [running] = admin.deck.releases.items
  admin.deck.releases.items.unshift({ ...running, id: 'r4', servedAt: null, outcome: 'rolled-back', rollout: 7 })
  const figures = { workers: 1, requests: 900, errorRate: 0, p99Ms: 130 }
  const detail = { id: 7, kind: 'deploy', state: 'rolled-back', from: 'r1', to: 'r4', actor: 'ada', note: null,
    startedAt: running.createdAt, finishedAt: running.createdAt, done: true, reason: 'p50 is 120 ms', steps: [],
    progress: { total: 2, replaced: 0 },
    verdicts: [{ at: running.createdAt, passed: false, isFinal: false, message: 'p50 is 120 ms', canary: figures,
      baseline: figures,
      decided: { figure: 'p50', unit: 'ms', canary: 120, baseline: 20, limit: 90, option: 'p99Ratio' } }] }
  admin.deck.events.publish({ type: 'rollout.rolled-back', rollout: 7, actor: 'ada', message: detail.reason, detail })
  for (const path of ['/', '/deploys', '/releases/r4', '/rollouts/7'])
    assert.match((await visit(path)).text,
      /<dt>p50 of r4<\/dt><dd class="is-worse">120 ms<[^]*?>20 ms<[^]*?title="The option rollout\.limits\.p99Ratio">90 ms</,
      path)
  assert.match((await visit('/releases/r4')).text, /<strong><bdi>Its deploy was rolled back: too slow\.</)
})

test('a release is compared with the one before it, unless another is named', async (t) => {
  const { admin, visit } = await setUp(t)
  const [running, older] = admin.deck.releases.items
  admin.deck.set({ release: { ...admin.deck.snapshot().release, id: 'r4' } })
  admin.deck.releases.items.splice(0, 2, { ...running, id: 'r5', changed: { ...running.changed, from: 'r4' } }, {
    ...running,
    id: 'r4',
    changed: { ...running.changed, from: 'r3' }
  }, older)
  for (const [path, from] of [['/releases/r4/compare', 'r3'], ['/releases/r5/compare', 'r4'], [
    '/releases/r4/compare?from=r5',
    'r5'
  ], ['/compare?to=r4', 'r3']]) {
    assert.ok((await visit(path)).text.includes(`<h1>From <a href="/releases/${from}">`), path)
  }
  assert.match((await visit('/compare?pick=r4&pick=r3')).text,
    /<h1>From <a href="\/releases\/r3">r3<\/a> to <a href="\/releases\/r4">/)
  assert.match((await visit('/compare?pick=r4')).text, /pick: expected two releases to compare, received 1/)
})

test('a comparison tells operators alone which files differ, and has no release to compare the oldest with', async (t) => {
  const { admin } = await setUp(t)
  const compare = async (role: 'viewer' | 'operator') => {
    const { headers } = await admin.tokenFor(role, role)
    const { body } = await admin.api('get', '/api/v1/releases/r3/compare?from=r1').set(headers)
    return body.files
  }
  assert.deepEqual([await compare('viewer'), (await compare('operator'))?.items[0].name], [null, 'app.js'])
  admin.deck.set({ release: { ...admin.deck.snapshot().release, id: 'r3' } })
  const oldest = await admin.api('get', '/api/v1/releases/r1/compare').expect(404)
  assert.match(oldest.text, /No release from before r1 is kept: name one as/)
})

test('any two releases can be compared, and what is none is not found', async (t) => {
  const { visit } = await setUp(t)
  const [running, other, picked] = await Promise.all(
    ['/releases/r1/compare', '/releases/r1/compare?from=r3', '/compare?from=r3&to=r1'].map(visit)
  )
  assert.match(running.text, /Both are the same release/)
  for (const { text } of [other, picked])
    assert.match(text,
      /From <a href="\/releases\/r3">.* to <a href="\/releases\/r1">[^]*<option value="r3" selected>[^]*<option value="r1" selected>/)
  assert.deepEqual(
    await Promise.all(
      ['/releases/r1/compare?from=r9', '/releases/x/compare', '/releases/r1/compare?from=%00', '/compare?from=r3',
        '/compare?from=r1&to=%3Cb%3E'].map(async (path) => (await visit(path)).status)
    ),
    [404, 404, 404, 404, 404]
  )
})

test('the dialog of a deploy shows what it would do, to those who may deploy', async (t) => {
  const { admin, visit } = await setUp(t)
  const { status, text } = await visit('/deploys/preview')
  const said = text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
  assert.equal(status, 200)
  assert.match(said,
    /r1 runs from the same folder Release r2, new, after r1 Package told 1\.2\.4 Commits 1 or more added Files 30 changed, 1 added: views\/&lt;b&gt;\.html and 30 more Changed package\.json, variables LEVEL Option workers from 2 to 4: at the next start Option env: with this deploy Plan 2 workers, .* Last three rollout 1 succeeded in 4\.2 s Folder .* Hooks beforeDeploy Added commits 8989898989 Faster totals Ada/)
  assert.deepEqual(admin.deck.dispatched, [])
  admin.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'ada' })
  assert.match((await visit('/deploys/preview')).text, /tone-bad"><bdi>rollout 1 \(restart\) is running/)
})

test('the dialogs say what rollout.order does: new workers first, or old ones', async (t) => {
  const { admin, visit } = await setUp(t)
  const said = async () =>
    [await visit('/dialogs'), await visit('/releases/r3/rollback')].map(({ text }) => text.replace(/<[^>]*>/g, ''))
      .join('\n')
  assert.match(await said(), /so no request is dropped[^]*Each is ready before the old one drains/)
  admin.deck.configure({ wanted: { 'rollout.order': 'stop-first' }, actor: 'ben' })
  const stopFirst = await said()
  assert.doesNotMatch(stopFirst, /no request is dropped|ready before the old one|once it is ready/)
  assert.equal(stopFirst.match(/fewer workers serve meanwhile/g)?.length, 5)
})
