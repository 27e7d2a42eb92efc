import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { PROBLEMS } from '../../../server/events/kinds.ts'
import { parseFilters, urlOf } from '../../../server/events/page-filters.ts'
import { historyModel } from '../../../server/events/page.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake } from '../../support/fake.ts'
import { assertRetold } from '../../support/golden.ts'
import { anEvent, NOW } from '../../support/snapshots.ts'
import type { DeckError } from '../../../server/errors.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { History } from '../../../db/history.ts'

const views = createViews()
const aHistory = (items: DeckEvent[] = []) => fake<History>({ page: () => ({ items, next: null }) })

test('filters that are equal have equal addresses without the empty ones, and what cannot be read is refused', async () => {
  const marks = { deployed: () => NOW - 60_000, started: () => NOW - 120_000 }
  await assertRetold(import.meta, 'history-filters', (given) => {
    const [query, at] = given.split(' at ')
    try {
      const { filters, query: asked } = parseFilters(new URLSearchParams(query), at ? Date.parse(at) : NOW, marks)
      const times = Object.entries(asked).map((
        [name, value]
      ) => [name, typeof value === 'number' && value > 1e9 ? new Date(value).toISOString() : value])
      return `${urlOf('/history', filters)} ${JSON.stringify(Object.fromEntries(times))}`
    } catch (error) {
      const { code, message } = error as DeckError
      return `${code}: ${message}`
    }
  })
  const { filters } = parseFilters(new URLSearchParams('q=boom&type=worker.*'), NOW)
  assert.equal(urlOf('/history', filters, { q: undefined, type: undefined }), '/history')
  assert.deepEqual(parseFilters(new URLSearchParams('type=problems'), NOW).query, { type: [...PROBLEMS] })
  assert.throws(() => parseFilters(new URLSearchParams({ q: 'x'.repeat(101) }), NOW), { code: 'invalid-query' })
})

test('a page of the history survives any query, and says what it cannot read', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('q', 'type', 'slot', 'range', 'since', 'cursor', 'trail'), fc.string()),
      (query) => {
        const model = historyModel({ history: aHistory([anEvent()]), params: new URLSearchParams(query), now: NOW })
        const html = views.render('pages/history', model)
        assert.match(html, /<\/html>/)
        assert.equal(html.includes('id="event-1"'), model.problem === null)
      })
  )
})

test('what goes as it should is one row; what does not, and what was asked for, is not', () => {
  const ready = (id: number) => anEvent({ id, type: id % 2 ? 'worker.forked' : 'worker.ready' })
  const planned = (id: number) => anEvent({ id, cause: 'deploy', code: 0 })
  const events = [planned(12), planned(11), ready(10), ready(9), anEvent({ id: 8, cause: 'crash' }), ready(7), ready(6),
    ready(5), anEvent({ id: 4, cause: 'deploy', signal: 'SIGKILL' }), ready(3), ready(2), ready(1), ready(0)]
  const show = (query: string) =>
    historyModel({ history: aHistory(events), params: new URLSearchParams(query), now: NOW })
  assert.deepEqual(
    show('release=r1').rows.map((row) => row.id === null ? row.event.id : [row.id, row.summary, row.events.length]),
    [['fold-9', '1 worker became ready, 2 ended as planned, 1 was forked', 4], 8, 7, 6, 5, 4, ['fold-0',
      '2 workers became ready, 2 were forked', 4]]
  )
  assert.match(views.render('pages/history', show('')), /<details id="fold-0-events">/)
  for (const query of ['q=x', 'type=worker.*', 'cause=deploy', 'slot=1', 'worker=7', 'rollout=1'])
    assert.equal(show(query).rows.length, events.length, query)
})

test('crashes of one group that follow each other are one row with the newest, whatever started between them', () => {
  const crash = (id: number, crashGroup: number) =>
    anEvent({ id, cause: 'crash', message: `worker ${id} crashed`, detail: { crash: id, crashGroup } })
  const again = (id: number) => anEvent({ id, type: id % 2 ? 'worker.restarted' : 'worker.forked' })
  const events = [crash(20, 7), again(19), again(18), crash(17, 7), crash(16, 7), again(15), crash(14, 7), crash(13, 8),
    crash(12, 8)]
  const { rows } = historyModel({ history: aHistory(events), params: new URLSearchParams(), now: NOW })
  assert.deepEqual(rows.map((row) => row.id ?? row.event.id), ['fold-14', 13, 12])
  assert.match(rows[0].id === null ? '' : rows[0].summary, /^4 crashes of the same kind, the last: .*20/)
})

test('runs of jobs that go well are one row, and one that fails is seen', () => {
  const job = (id: number, type: string) => anEvent({ id, type, message: 'nightly' })
  const events = [...[9, 8, 7, 6].map((id) => job(id, id % 2 ? 'job.succeeded' : 'job.started')), job(5, 'job.failed')]
  const { rows } = historyModel({ history: aHistory(events), params: new URLSearchParams(), now: NOW })
  assert.deepEqual(rows.map((row) => row.id === null ? row.event.id : row.summary), [
    '2 job runs began, 2 job runs succeeded',
    5
  ])
})

test('a time from which no event is kept any more is told as such', () => {
  const show = (until: string) =>
    views.render('pages/history',
      historyModel({ history: aHistory([]), params: new URLSearchParams({ since: '2020-01-01T00:00:00Z', until }),
        now: NOW, keptMs: () => 30 * 86_400_000 }))
  assert.match(show('2020-01-02T00:00:00Z'), /Past time, not live/)
  assert.match(show(new Date(NOW + 1).toISOString()), /Live: new events appear at the top/)
  assert.match(show('2020-01-02T00:00:00Z'), /Events are kept for 30 days; this time is longer ago\.<\/strong>/)
  assert.match(show(new Date(NOW).toISOString()), /No event matches these filters/)
})

test('a fold is whole on one page, keeps its name while newer events push it down, and lists what fits', () => {
  const crash = (id: number) => anEvent({ id, cause: 'crash' })
  const ready = (id: number) => anEvent({ id, type: 'worker.ready' })
  const all = [...Array.from({ length: 40 }, (_, index) => crash(1000 - index)),
    ...Array.from({ length: 400 }, (_, index) => ready(900 - index)), crash(400), ready(399)]
  const history = fake<History>({ page ({ limit = 0, cursor } = {}) {
    const from = cursor === undefined ? 0 : Number(cursor)
    return { items: all.slice(from, from + limit), next: from + limit < all.length ? String(from + limit) : null }
  } })
  const show = (query: string) => historyModel({ history, params: new URLSearchParams(query), now: NOW })
  const { rows, links, isCutShort } = show('')
  assert.equal(isCutShort, false)
  const fold = rows.at(-1) as typeof rows[number] & { id: string }
  assert.deepEqual([rows.length, fold.id, fold.summary, fold.count, fold.events.length], [41, 'fold-501',
    '400 workers became ready', 400, 25])
  assert.match(views.render('pages/history', show('')),
    /href="\/history\?type=worker\.ready&amp;since=[^"]*">All 400 events/)
  assert.deepEqual(show(String(links.older?.split('?')[1])).rows.map((row) => row.id ?? row.event.id), [400, 399])
  all.unshift(...Array.from({ length: 30 }, (_, index) => crash(2000 - index)))
  assert.equal(show('').rows.at(-1)?.id, 'fold-501')
})
