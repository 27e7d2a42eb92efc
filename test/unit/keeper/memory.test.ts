import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemory } from '../../../server/keeper/memory.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'

const event = (id: number) => ({ id, type: 'told', at: '' } as DeckEvent)
const ids = (events: { id: number }[]) => events.map(({ id }) => id)

test('a master with one app gets what it gave, and no word of apps', () => {
  const memory = createMemory()
  assert.deepEqual(memory.greeting(), { memory: null, unsaved: [] })
  memory.remember({ release: 'r1' })
  memory.keep(event(1))
  memory.keep(event(2))
  assert.deepEqual(memory.greeting(), { memory: { release: 'r1' }, unsaved: [event(1), event(2)] })
  assert.deepEqual(memory.contents(), { content: { release: 'r1' } })
  memory.saved()
  memory.remember(null)
  assert.deepEqual(memory.greeting(), { memory: null, unsaved: [] })
})

test('what an app has saved is gone, and what others have not saved stays', () => {
  const memory = createMemory()
  memory.remember('the host')
  memory.keep(event(1))
  for (const app of ['shop', 'blog']) {
    memory.remember(app, app)
    memory.keep(event(2), app)
  }
  memory.saved('shop')
  assert.deepEqual(memory.greeting(), { memory: 'the host', unsaved: [event(1)],
    apps: [{ app: 'shop', memory: 'shop', unsaved: [] }, { app: 'blog', memory: 'blog', unsaved: [event(2)] }] })
  memory.saved()
  memory.remember(null, 'shop')
  assert.deepEqual(memory.greeting(), { memory: 'the host', unsaved: [],
    apps: [{ app: 'blog', memory: 'blog', unsaved: [event(2)] }] })
  assert.deepEqual(memory.contents(), { content: 'the host', apps: [{ app: 'blog', content: 'blog' }] })
})

test('where there are too many events the oldest go, of the app that has most of them', () => {
  const memory = createMemory({ maxUnsaved: 5 })
  for (const id of [1, 2]) memory.keep(event(id), 'shop')
  for (let id = 1; id <= 100; id++) memory.keep(event(id), 'flood')
  const { apps = [] } = memory.greeting()
  assert.deepEqual(apps.map(({ unsaved }) => ids(unsaved)), [[1, 2], [98, 99, 100]])
  memory.saved('flood')
  for (const id of [3, 4, 5]) memory.keep(event(id), 'shop')
  assert.deepEqual(ids(memory.greeting().apps?.[0].unsaved ?? []), [1, 2, 3, 4, 5])
})
