import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMasterWatch } from '../../../server/keeper/master-watch.ts'
import { rareTest } from '../../support/rare.ts'
import { fake } from '../../support/fake.ts'
import type { ChildProcess } from 'node:child_process'

const BEAT = { isInspected: false }

/** `beats`: that come through while a silent master is asked for its stack */
async function watchSilent (beats: number) {
  const over: PromiseWithResolvers<void> = Promise.withResolvers()
  let outcome = ''
  const master = { child: fake<ChildProcess>({ pid: process.pid }) }
  const watch = createMasterWatch({ list: () => [master], onHung () {
    outcome = 'hung'
    over.resolve()
  }, onAnswered () {
    outcome = 'answers'
    over.resolve()
  }, async capture () {
    for (let beat = 0; beat < beats; beat++) watch.heard(master, BEAT)
    return { stack: null, reason: 'of a test' }
  } })
  watch.configure({ afterMs: 500 })
  watch.heard(master, BEAT)
  // The watch keeps nobody alive.
  const timer = setInterval(() => {}, 1000)
  await over.promise
  clearInterval(timer)
  watch.configure({ afterMs: 0 })
  return outcome
}

test('a master that goes on answering once it was asked where it is does not hang', async () => {
  assert.equal(await watchSilent(2), 'answers')
})

rareTest('one beat after the signal that asks for the stack proves nothing: it ends a call that waits in the kernel',
  async () => {
    assert.equal(await watchSilent(1), 'hung')
  })
