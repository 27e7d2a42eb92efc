import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFleet } from '../../../server/fleet/fleet.js'
import { tempFolder } from '../../support/folder.js'
import { createIdleDeck } from '../../support/idle-deck.js'

/** An engine that is connected, and answers when it is told to. */
function createSlowEngine () {
  /** @type {((answer: object) => void)[]} */
  const waiting = []
  const later = () => new Promise((resolve) => waiting.push(resolve))
  const away = async () => ({ is: 'away', reason: 'busy' })
  const state = { isConnected: true, since: '2026-01-01T00:00:00.000Z', server: 'nats.example.com:4222', problem: null }
  return {
    engine: /** @type {any} */ ({ state, start () {}, use () {}, call: later, attempt: away, write: away, say () {}, close: async () => {} }),
    answer: () => { for (const resolve of waiting.splice(0)) resolve({ is: 'done', value: { document: null, revision: 0 } }) }
  }
}

test('a master that has not read the rollout yet does not say that there is none', async (t) => {
  const { engine, answer } = createSlowEngine()
  const fleet = createFleet({ options: { servers: [], name: 'test', member: 'a', labels: {}, accept: 'operate', tls: {} }, folder: tempFolder(), deck: createIdleDeck(), version: '1.0.0', url: null, log: { warn () {} }, serve: async () => { throw new Error('expected no question') }, connect: () => engine })
  t.after(fleet.close)
  const { engine: before } = fleet.status()
  assert.deepEqual([before.isConnected, before.problem], [false, 'its rollout has not been read yet'])
  answer()
  const { engine: now, rollout } = await fleet.look()
  assert.deepEqual([now.isConnected, now.problem, rollout], [true, null, null])
})
