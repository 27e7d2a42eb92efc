import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleet } from '../../../server/cli/fleet.js'
import { halt } from '../../../server/fleet/rollout.js'
import { aMember, aRollout, inTurnOf } from '../../support/fake-fleet.js'

test('a wait ends, with the reason, where a rollout was halted for a host that says nothing any more', async () => {
  const begun = inTurnOf(aRollout(['web-1', 'web-2']), 'web-1')
  const halted = halt(begun, { at: begun.startedAt, reason: 'web-1 has been in its turn for more than 3.0 s: nobody takes it over', member: 'web-1' })
  /** @type {boolean[]} whether it is silent, look by look: at first it may still say what became of it */
  const looks = [false, true]
  const api = {
    post: async () => begun,
    get: async () => ({ rollout: halted, engine: { isConnected: true }, members: [aMember({ member: 'web-1', isSilent: looks.shift() }), aMember({ member: 'web-2' })] })
  }
  const context = /** @type {any} */ ({ api, options: { wait: true }, print () {}, tell () {}, timeoutMs: 60_000 })
  await assert.rejects(fleet(context, 'deploy'), { code: 'rollout-failed', message: 'rollout 7 of the fleet (deploy) is halted: web-1 has been in its turn for more than 3.0 s: nobody takes it over' })
  assert.deepEqual(looks, [])
})
