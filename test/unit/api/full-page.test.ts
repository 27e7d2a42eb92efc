import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fullPage } from '../../../server/api/full-page.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { EventQuery } from '../../../db/event-search.ts'

/** A history that gives out at most `most` events a call, of `total`, newest first. */
function slowHistory ({ total = 10, most = 3 } = {}) {
  const queries: EventQuery[] = []
  const page = (query: EventQuery = {}) => {
    queries.push(query)
    const newest = Number(query.cursor ?? total)
    const items = Array.from({ length: Math.min(most, query.limit ?? 100, newest) },
      (_, n) => ({ id: newest - n } as DeckEvent))
    const rest = newest - items.length
    return { items, next: (rest > 0 ? rest : null) as string | null }
  }
  return { page, queries }
}

const ids = (items: DeckEvent[]) => items.map(({ id }) => id)

test('pieces are put together to the page that was asked for, with the cursor of its end', async () => {
  const history = slowHistory()
  const { items, next } = await fullPage(history, { type: ['x'], limit: 7 })
  assert.deepEqual(ids(items), [10, 9, 8, 7, 6, 5, 4])
  assert.equal(next, 3)
  assert.deepEqual(history.queries.map(({ limit }) => limit), [7, 4, 1])
  assert.ok(history.queries.every(({ type }) => type?.[0] === 'x'))
})

test('a list that ends before is whole without a cursor', async () => {
  const { items, next } = await fullPage(slowHistory(), {})
  assert.equal(items.length, 10)
  assert.equal(next, null)
})

test('a search that finds nothing gives up after a while, with a cursor to go on', async () => {
  const history = slowHistory({ total: 1000, most: 0 })
  const { items, next } = await fullPage(history, { q: 'needle' })
  assert.deepEqual(items, [])
  assert.equal(next, 1000)
  assert.equal(history.queries.length, 50)
})
