import assert from 'node:assert/strict'
import { test } from 'node:test'
import { frameModel } from '../../../server/dashboard/frame.ts'
import { withOneSnapshot } from '../../../server/dashboard/one-snapshot.ts'

test('all that one update renders is of one snapshot and one verdict, and the next update looks again', async () => {
  const asked = { snapshot: 0, health: 0 }
  const deck = withOneSnapshot(
    { name: 'shop', snapshot: () => ({ app: { name: 'shop' }, number: ++asked.snapshot }),
      health: ({ number }: { number: number }) => ({ tone: 'ok', problems: number, times: ++asked.health }) } as any
  )
  const page = deck.snapshot()
  const { trouble } = frameModel({ deck })
  assert.equal(deck.health(page).problems, 1)
  assert.deepEqual([trouble.count, asked], [1, { snapshot: 1, health: 1 }])
  // Of another snapshot it is another verdict.
  assert.equal(deck.health({ number: 7 } as any).problems, 7)
  await null
  assert.equal(frameModel({ deck }).trouble.count, 2)
  assert.equal((deck as any).name, 'shop')
})
