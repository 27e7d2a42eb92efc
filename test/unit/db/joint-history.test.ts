import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { pastOf } from '../../../db/joint-history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { DeckError } from '../../../server/errors.ts'
import { countOverTime } from '../../../server/events/api-histogram.ts'

/** Three histories whose events take turns; `mail` has nothing of type `job.failed`. */
function openPast (t: TestContext) {
  let now = 1000
  const histories = Object.fromEntries(['host', 'mail', 'shop'].map((name) => {
    const history = openHistory({ file: ':memory:', now: () => now, clock: () => 0 })
    t.after(() => history.close())
    const events = createEventStream({ now: () => now })
    events.subscribe((event) => history.record(event))
    return [name, { history, publish: events.publish }]
  }))
  for (let n = 0; n < 30; n++) {
    const name = ['host', 'mail', 'shop'][n % 3]
    // Some are of the same moment.
    if (n % 2) now++
    histories[name].publish({ type: name === 'mail' || n % 4 ? 'worker.ready' : 'job.failed', message: `${n}` })
  }
  const { host: { history: own }, ...apps } = histories
  return { apps, past: pastOf((name) => apps[name] ?? null, own) }
}

test('histories are read as one, newest first: each event once, with its app, in pages of any length', (t) => {
  const { past } = openPast(t)
  for (const limit of [1, 2, 7, 30, 100]) {
    const read = past(['mail', 'shop', 'stopped'], true)
    const items = []
    let cursor: string | null | undefined
    do {
      const page = read.page({ limit, cursor })
      items.push(...page.items)
      cursor = page.next
    } while (cursor !== null)
    assert.deepEqual(items.map(({ message }) => Number(message)).sort((a, b) => a - b),
      Array.from({ length: 30 }, (_, n) => n))
    assert.deepEqual(items.map(({ at }) => at), items.map(({ at }) => at).sort().reverse())
    for (const { app, message } of items) assert.equal(app, [null, 'mail', 'shop'][Number(message) % 3])
  }
  assert.deepEqual([...new Set(past(['shop'], false).page({ type: 'job.failed' }).items.map(({ app }) => app))], [
    'shop'
  ])
})

test('they are counted as one, too', async (t) => {
  const { past } = openPast(t)
  const { items } = await countOverTime(past(['mail', 'shop'], true), {}, { now: 2000 })
  assert.equal(items.reduce((total, { count }) => total + count, 0), 30)
})

test('one that cannot be read keeps nobody from the others; a wrong cursor or filter is refused', (t) => {
  const { apps, past } = openPast(t)
  const { next } = past(['mail', 'shop'], true).page({ limit: 3 })
  apps.mail.history.page = () => {
    throw new DeckError('history-unavailable', 'it is damaged')
  }
  assert.equal(past(['mail', 'shop'], true).page().items.length, 20)
  assert.equal(past(['mail', 'shop'], true).page({ cursor: next }).items.length, 18)
  for (const query of [{ cursor: 'nonsense' }, { since: 'no time' }, { limit: 0 }])
    assert.throws(() => past(['shop'], true).page(query), { code: 'invalid-query' })
})
