import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSemaphore } from '../../../server/system/semaphore.ts'

test('so much is done at a time, the rest in the order in which it came, also after what fails', async () => {
  const semaphore = createSemaphore(2)
  const begun: string[] = []
  const ends = Object.fromEntries(
    ['a', 'b', 'c', 'd'].map((name) => [name, Promise.withResolvers() as PromiseWithResolvers<void>])
  )
  const all = Object.entries(ends).map(([name, { promise }]) =>
    semaphore.run(async () => {
      begun.push(name)
      await promise
      if (name === 'b') throw new Error('b fails')
      return name
    })
  )
  const isOver = Promise.allSettled(all)
  assert.deepEqual(begun, ['a', 'b'])
  ends.b.resolve()
  await assert.rejects(all[1], /b fails/)
  assert.deepEqual(begun, ['a', 'b', 'c'])
  ends.a.resolve()
  assert.equal(await all[0], 'a')
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
  ends.c.resolve()
  ends.d.resolve()
  assert.deepEqual((await isOver).map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  assert.equal(await semaphore.run(() => 'at once'), 'at once')
})
