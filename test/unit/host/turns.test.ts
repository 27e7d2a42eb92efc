import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createTurns, type Turns } from '../../../server/host/turns.ts'

mock.timers.enable({ apis: ['setTimeout'] })

/** Lets promises be settled. */
const settle = async () => {
  for (let n = 0; n < 10; n++) await null
}

async function begin (turns: Turns, name: string, over: Promise<unknown> = new Promise(() => {})) {
  await turns.of(name).take(over)
}

test('so many apps start at a time, in the order in which they ask; the next one starts when one is ready, has failed, or takes too long', async () => {
  const turns = createTurns({ atOnce: 2, turnMs: 3000 })
  const begun: string[] = []
  const apps = ['first', 'second', 'third', 'fourth', 'fifth'].map((name) => {
    const over: PromiseWithResolvers<void> = Promise.withResolvers()
    const failure: PromiseWithResolvers<void> = Promise.withResolvers()
    begin(turns, name, Promise.race([over.promise, failure.promise.then(() => {
      throw new Error(name)
    })])).then(() => {
      begun.push(name)
    })
    return { ready: over.resolve, fail: failure.resolve }
  })
  await settle()
  assert.deepEqual(begun, ['first', 'second'])
  apps[1].ready()
  await settle()
  assert.deepEqual(begun, ['first', 'second', 'third'])
  apps[2].fail()
  await settle()
  assert.deepEqual(begun, ['first', 'second', 'third', 'fourth'])
  mock.timers.tick(2999)
  await settle()
  assert.equal(begun.length, 4)
  mock.timers.tick(1)
  await settle()
  assert.equal(begun.length, 5)
  // One that has lost its turn gives none back later: beside the fifth there is room for one.
  apps[0].ready()
  await settle()
  for (const name of ['sixth', 'seventh'])
    begin(turns, name).then(() => {
      begun.push(name)
    })
  await settle()
  assert.deepEqual(begun.slice(5), ['sixth'])
})

test('whoever has a turn at once is told so at once; the others see whose turn it is, and one that gives up takes none', async () => {
  const turns = createTurns({ atOnce: 2 })
  const [shop, mail, gone]: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers(),
    Promise.withResolvers()]
  assert.deepEqual([turns.of('shop').take(shop.promise), turns.of('mail').take(mail.promise)], [null, null])
  let isGone = false
  turns.of('gone').take(gone.promise)?.then(() => {
    isGone = true
  })
  const blog = turns.of('blog').take(new Promise(() => {}))
  assert.deepEqual(turns.of('blog').taken(), ['shop', 'mail'])
  gone.resolve()
  await settle()
  assert.deepEqual([isGone, turns.of('blog').taken()], [false, ['shop', 'mail']])
  shop.resolve()
  await blog
  await settle()
  assert.deepEqual(turns.of('blog').taken(), ['mail', 'blog'])
})
