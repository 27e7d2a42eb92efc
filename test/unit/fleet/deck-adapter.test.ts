import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FleetRollout } from '../../../server/fleet/document.ts'
import { startRollout } from '../../../server/fleet/rollout.ts'
import { createDeckAdapter, type OwnDeck } from '../../../server/fleet/deck-adapter.ts'
import { fake } from '../../support/fake.ts'

const ROLLOUT = startRollout(null, { id: 1, uid: 'one', app: 'shop', kind: 'deploy', source: {}, batches: [['a']],
  pauseMs: 0, deadlineMs: 60_000, onFailure: 'hold', absent: [], actor: 'ada', note: null,
  at: '2026-01-01T00:00:00.000Z' })

function open (accept: 'nothing' | 'read' | 'operate') {
  const done: { path?: string, mode?: string }[] = []
  const note = (command: object) => {
    done.push(command)
    return { id: done.length }
  }
  const deck = fake<OwnDeck>({ dispatch: note, deploy: async (command) => note(command),
    snapshot: () => ({ release: undefined }) })
  return { done, deckAdapter: createDeckAdapter(deck, accept, { fetch: async () => '/app' }) }
}

test('a deck that does not accept it neither deploys nor goes back for the fleet, whatever a document says that it has done', async () => {
  for (const accept of ['nothing', 'read'] as const) {
    const { deckAdapter, done } = open(accept)
    await assert.rejects(deckAdapter.begin(ROLLOUT), { code: 'forbidden' })
    await assert.rejects(deckAdapter.rollBack('r1', ROLLOUT), { code: 'forbidden' })
    assert.deepEqual(done, [])
  }
})

test('one that does deploys, and goes back to the release that it had', async () => {
  const { deckAdapter, done } = open('operate')
  assert.deepEqual([await deckAdapter.begin(ROLLOUT), await deckAdapter.rollBack('r1', ROLLOUT)], [1, 2])
  assert.deepEqual(done[1], { type: 'rollout', kind: 'rollback', release: 'r1', actor: 'ada',
    note: 'rollout 1 of the fleet: rolled back' })
})

test('what was pushed is deployed into a release folder, and a folder that is named as it is configured', async () => {
  const { deckAdapter, done } = open('operate')
  const of = (source: FleetRollout['source']) => deckAdapter.begin({ ...ROLLOUT, source })
  await of({ digest: `sha256:${'a'.repeat(64)}` })
  await of({ path: 'v2' })
  assert.deepEqual(done.map(({ path, mode }) => [path, mode]), [['/app', 'folder'], ['v2', undefined]])
})
