import assert from 'node:assert/strict'
import { test } from 'node:test'
import { frameModel } from '../../../server/dashboard/frame.ts'
import { withOneSnapshot } from '../../../server/dashboard/one-snapshot.ts'
import { fake } from '../../support/fake.ts'
import type { Deck, Status } from '../../../server/deck.ts'

test('all that one update renders is of one snapshot and one verdict, and the next update looks again', async () => {
  const asked = { snapshot: 0, health: 0 }
  const deck = withOneSnapshot(
    fake<Deck & { name: string }>({ name: 'shop',
      snapshot: () => ({ app: { name: 'shop' }, desiredWorkers: ++asked.snapshot }), health: ({ desiredWorkers }) => {
        asked.health++
        return { tone: 'ok', problems: desiredWorkers }
      } })
  )
  const page = deck.snapshot()
  const { trouble } = frameModel({ deck })
  assert.equal(deck.health(page).problems, 1)
  assert.deepEqual([trouble.count, asked], [1, { snapshot: 1, health: 1 }])
  // Of another snapshot it is another verdict.
  assert.equal(deck.health(fake<Status>({ desiredWorkers: 7 })).problems, 7)
  await null
  assert.equal(frameModel({ deck }).trouble.count, 2)
  assert.equal(deck.name, 'shop')
})
