import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aCrash } from '../support/crash-record.ts'
import { startAdmin } from '../support/admin.ts'

test('a notice is on the status and on the overview until an operator acknowledges it', async (t) => {
  const admin = await startAdmin(t)
  const overview = async () => (await admin.visit('/')).text
  assert.match(await overview(), /id="notices" aria-label="Notices" hidden/)
  const { id } = admin.deck.events.publish({ type: 'keeper.lost', message: 'the keeper is <b>gone</b>' })

  assert.match(await overview(), /The keeper is &lt;b&gt;gone&lt;\/b&gt;.*Acknowledge/s)
  const { body: { notices: [notice], health } } = await admin.api('get', '/api/v1/status')
  assert.deepEqual([notice.id, notice.kind, health.tone], [id, 'keeper-lost', 'warn'])
  assert.deepEqual((await admin.api('get', '/api/v1/notices')).body, { items: [notice] })

  assert.equal((await admin.post('acknowledgeNotice', { id: String(id) })).status, 204)
  assert.deepEqual((await admin.api('get', '/api/v1/notices')).body, { items: [] })
  assert.doesNotMatch(await overview(), /class="standing/)
})

test('the status says who serves, and what the others have died of', async (t) => {
  const admin = await startAdmin(t)
  const stored = admin.history.crashes.record('price',
    aCrash({ errorName: 'TypeError', errorMessage: 'no\u001b[31m price\nof it' }), { culprit: 'total (price.js)' })
  const { id: event } = admin.deck.events.publish({ type: 'worker.exited', slot: 2, cause: 'crash', code: 1,
    detail: { crash: stored.crash, crashGroup: stored.group } })
  admin.deck.events.publish({ type: 'worker.exited', slot: 2, cause: 'deploy', code: 0 })
  const [ready, other] = admin.deck.snapshot().workers
  admin.deck.set({ readyWorkers: 1,
    workers: [ready, { ...other, id: null, pid: null, state: 'backoff', crashLooping: true }] })

  const { body: { health } } = await admin.api('get', '/api/v1/status')
  assert.deepEqual(health, { tone: 'bad', text: '1 of 2 workers serves; slot 2 keeps crashing',
    hint: 'Each restart waits longer than the last, up to a limit.', about: null,
    reasons: [{ slots: [2], text: 'TypeError: no\u001b[31m price, in total (price.js)', event, crashGroup: stored.group,
      isNewInRelease: true }], problems: 2 })
  const { text } = await admin.visit('/')
  assert.ok(text.includes(`<a href="/crashes/${stored.group}">TypeError: no price, in total (price.js)</a>`), text)
})

test('once all serve again the status names the open crashes of the release that runs, until they are resolved, and the page offers the way back', async (t) => {
  const admin = await startAdmin(t)
  const stored = admin.history.crashes.record('price',
    aCrash({ errorName: 'TypeError', errorMessage: 'no <b>price', release: 'r2' }), { culprit: 'total (price.js)' })
  const [{ id: _, ...first }] = admin.deck.releases.items
  admin.deck.releases.items.unshift({ ...first, id: 'r2' })
  admin.deck.set({ release: { ...admin.deck.snapshot().release, id: 'r2' } })

  const health = async () => (await admin.api('get', '/api/v1/status')).body.health
  assert.deepEqual(await health(), { tone: 'warn', text: 'All 2 workers are ready; 1 new crash in r2',
    hint: 'Resolved and muted crashes no longer count.', about: null,
    reasons: [{ slots: [], text: 'TypeError: no <b>price, in total (price.js)', event: null, crashGroup: stored.group,
      isNewInRelease: true }], problems: 1 })
  const overview = async () => (await admin.visit('/')).text
  const page = await overview()
  assert.ok(page.includes(`<a href="/crashes/${stored.group}">TypeError: no &lt;b&gt;price, in total (price.js)</a>`),
    page)
  assert.match(page, /id="roll-back-to-r1"/)

  await admin.api('post', `/api/v1/crashes/${stored.group}/mute`)
  assert.deepEqual([(await health()).tone, (await health()).problems], ['ok', 0])
  assert.doesNotMatch(await overview(), /id="roll-back-to-r1"/)
})
