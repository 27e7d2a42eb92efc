import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tempFolder } from '../../support/folder.ts'
import { joinIdleDeck } from '../../support/idle-deck.ts'
import { fake } from '../../support/fake.ts'
import type { Connection } from '../../../server/fleet/nats-connection.ts'

/** a NATS server that is connected, and answers when it is told to. */
function createSlowEngine () {
  const waiting: ((answer: { is: 'done', value: object }) => void)[] = []
  const later = () => new Promise<{ is: 'done', value: object }>((resolve) => waiting.push(resolve))
  const away = async () => ({ is: 'away' as const, reason: 'busy' })
  const state = { isConnected: true, since: '2026-01-01T00:00:00.000Z', server: 'nats.example.com:4222', problem: null }
  return {
    nats: fake<Connection>({ state, start () {}, use: () => () => {}, call: later, attempt: away, write: away,
      say () {}, close: async () => {} }),
    answer: () => {
      for (const resolve of waiting.splice(0)) resolve({ is: 'done', value: { document: null, revision: 0 } })
    }
  }
}

test('a master that has not read the rollout yet does not say that there is none', async (t) => {
  const { nats, answer } = createSlowEngine()
  const fleet = joinIdleDeck({ servers: [], name: 'test', member: 'a' }, { folder: tempFolder(), connect: () => nats })
  t.after(fleet.close)
  const { nats: before } = fleet.status()
  assert.deepEqual([before.isConnected, before.problem], [false, 'its rollout has not been read yet'])
  answer()
  const { nats: now, rollout } = await fleet.look()
  assert.deepEqual([now.isConnected, now.problem, rollout], [true, null, null])
})
