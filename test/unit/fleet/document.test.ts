import assert from 'node:assert/strict'
import { test } from 'node:test'
import { documentOf, MAX_MEMBERS, MAX_ID } from '../../../server/fleet/document.ts'
import { startRollout } from '../../../server/fleet/rollout.ts'
import { fake } from '../../support/fake.ts'

const GOOD = startRollout(null, { id: 1, uid: 'one', app: 'shop', kind: 'deploy', source: {}, batches: [['a'], ['b']],
  pauseMs: 0, deadlineMs: 60_000, onFailure: 'hold', absent: [], actor: 'ada', note: null,
  at: '2026-01-01T00:00:00.000Z' })

function read (value: unknown, operation: 'PUT' | 'DEL' | 'PURGE' = 'PUT', app: string = 'shop') {
  const text = JSON.stringify(value)
  return documentOf(fake({ operation, length: text.length, json: () => JSON.parse(text) }), app)
}

test('a document is what a member has written, and nothing else', () => {
  assert.deepEqual(read(GOOD), GOOD)
  assert.equal(read(GOOD, 'DEL'), null)
  assert.equal(read(GOOD, 'PUT', 'mail'), null)
  for (const actor of ['api', 'cli', 'dashboard', 'ada@example.com'])
    assert.equal(read({ ...GOOD, actor })?.actor, actor)
  const [moment] = GOOD.timeline
  const names = Array.from({ length: MAX_MEMBERS + 1 }, (_, n) => `m${n}`)
  const hostile = { 'a number that nobody could count on from': { id: MAX_ID + 1 },
    'a state that does not exist': { state: 'done' },
    'no moment, of which whoever writes next would tell': { timeline: [] },
    'a moment that is no word': { timeline: [{ ...moment, type: '\u001b[2J' }] },
    'what nobody has asked for': { actor: 'guard' }, 'what nobody has asked for, in another way': { actor: 'Signal' },
    'a person who is no line of text': { actor: '\u001b]0;ada\u0007' },
    'more members than there may be': { batches: [names],
      turns: Object.fromEntries(names.map((name) => [name, GOOD.turns.a])) },
    'a turn of nobody': { turns: { ...GOOD.turns, c: GOOD.turns.a } },
    'nobody for a turn': { batches: [['a'], ['b'], ['c']] } }
  for (const [what, changes] of Object.entries(hostile)) assert.equal(read({ ...GOOD, ...changes }), null, what)
})

test('how a rollout goes is for each deck to say, not for the document', () => {
  assert.deepEqual(read({ ...GOOD, source: { path: '/app', strategy: { order: 'none' } } })?.source, { path: '/app' })
})
