import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startAdmin, START_MS } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'

const HOSTILE = '<b>\u001b[2J"boom"'

async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  for (let n = 0; n < 3; n++)
    admin.history.crashes.record(`v1:${n}`,
      aCrash({ at: new Date(START_MS + n * 1000).toISOString(), worker: n, release: `r${n}`, errorName: 'Error',
        errorMessage: `${HOSTILE} ${n}`, stack: `Error: x\n    at handler${n} (/srv/app.js:1:1)`, frames: [],
        causes: [{ depth: 1, errorName: 'TypeError', errorMessage: 'inner', stack: 'TypeError: inner\n    at deep' }],
        requests: [{ method: 'GET', path: '/pay', ageMs: 12 }], stderr: ['last words'] }), {
      culprit: `handler${n} (app.js)`
    })
  const get = async <P extends string>(path: P) => (await admin.api('get', `/api/v1/crashes${path}`).expect(200)).body
  const cli = (line: string) => admin.cli(...line.split(' '))
  return { get, cli }
}

test('groups are listed page by page, filtered, and shown with their crashes', async (t) => {
  const { get } = await setUp(t)
  const first = await get('?limit=2')
  assert.deepEqual(first.items.map(({ id }) => id), [3, 2])
  assert.deepEqual((await get(`?limit=2&cursor=${first.next}`)).items.map(({ id }) => id), [1])
  for (const [query, ids] of [['release=r1', [2]], ['q=handler2', [3]], ['since=2026-01-01T00:00:01Z', [3, 2]], [
    'state=muted',
    []
  ], ['q=%22*', []]] as [string, number[]][]) {
    assert.deepEqual((await get(`?${query}`)).items.map(({ id }) => id), ids, query)
  }
  const group = await get('/2')
  assert.equal(group.isNewInRelease, true)
  assert.deepEqual(group.latest, await get(`/2/occurrences/${group.occurrences[0].id}`))
  assert.equal(group.latest?.stderr[0], 'last words')
})

test('groups are sorted by the API', async (t) => {
  const { get } = await setUp(t)
  assert.deepEqual((await get('?sort=first&limit=2')).items.map(({ id }) => id), [3, 2])
  assert.equal((await get('/1')).goneSince, 'r1')
})

test('the command line prints groups and one of them, without what would move the cursor', async (t) => {
  const { cli } = await setUp(t)
  const list = await cli('crashes')
  assert.equal(list.code, 0)
  assert.match(list.stdout, /^ID {2}STATE .*\n 3 {2}open .*handler2 \(app\.js\)\n/)
  const one = await cli('crashes 2')
  for (const part of ['group     2, open (new)', 'handler1 (/srv/app.js:1:1)', 'caused by TypeError: inner',
    'GET /pay for 12 ms', '  last words']) assert.ok(one.stdout.includes(part), `${part} in ${one.stdout}`)
  assert.doesNotMatch(list.stdout + one.stdout, /\u001b/)
  assert.equal(JSON.parse((await cli('crashes --json --state open')).stdout).items.length, 3)
  assert.equal((await cli('crashes --q nothing')).stdout, 'no crashes\n')
  assert.deepEqual([(await cli('crashes x')).code, (await cli('crashes --state closed')).code,
    (await cli('crashes 99')).code], [2, 2, 1])
})
