import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { untilServing } from '../../../server/handover/host-line.ts'
import type { Message } from '../../../server/handover/json-lines.ts'

/** A host that says something now and then; null: it has gone. */
function host () {
  const waiting: ((message: Message | null) => void)[] = []
  mock.timers.enable({ apis: ['setTimeout'] })
  let silences = 0
  const over = untilServing({ next: () =>
    new Promise((resolve) => {
      waiting.push(resolve)
    }) }, { onSilent: () => {
      silences++
    }, silentMs: 1000 })
  return { over, silences: () => silences, pass: (ms: number) => mock.timers.tick(ms),
    async say (message: Message | null) {
      waiting.shift()?.(message)
      await null
      await null
    } }
}

test('a host may take as long as it wants to start the workers, as long as it says that it is there; where it says nothing, that is told, and waited on', async (t) => {
  t.after(() => mock.timers.reset())
  const { over, silences, pass, say } = host()
  for (let n = 0; n < 5; n++) {
    pass(999)
    await say({ type: 'starting' })
  }
  assert.equal(silences(), 0)
  pass(1000)
  assert.equal(silences(), 1)
  pass(9000)
  assert.equal(silences(), 1, 'once for each silence')
  await say({ type: 'serving' })
  assert.equal((await over).type, 'serving')
  pass(9000)
  assert.equal(silences(), 1)
})

test('a host that gives the app back, or has gone, ends the wait', async (t) => {
  t.after(() => mock.timers.reset())
  for (const [message, code] of [[{ type: 'refused', code: 'start-failed', message: 'worker 3 threw' }, 'start-failed'],
    [null, 'not-possible'], [{ type: 'what' }, 'not-possible']] as const)
  {
    const { over, say } = host()
    const refused = assert.rejects(over, { code })
    await say(message)
    await refused
    mock.timers.reset()
  }
})
