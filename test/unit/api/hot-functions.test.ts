import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hotFunctions } from '../../../server/diagnostics/api-hot-functions.ts'
import { profileOf } from '../../support/cpu-profile.ts'
import { fake } from '../../support/fake.ts'
import type { Diagnostic } from '../../../server/api/shapes.ts'

const ITEM = { id: 1, kind: 'cpu-profile', state: 'done', release: 'r1',
  startedAt: '2026-01-01T00:00:00.000Z' } as Diagnostic

const deck: Parameters<typeof hotFunctions>[2] = fake({ releases: { get: () => ({ path: '/srv/app' }) },
  crashes: {
    sourceLines: ({ frames }) =>
      frames.map(({ isInApp, file, line }) => isInApp ? [{ number: Number(line), text: String(file) }] : null)
  } })

test('the busiest functions come first, with the line in which they spend their time and its source', () => {
  const profile = profileOf([[1, '(root)', [2, 5]], [2, 'serve', [3]], [3, 'sum', [4], {
    url: 'file:///srv/app/prices.js',
    lineNumber: 9
  }], [4, 'hash', [], { url: 'node:crypto', lineNumber: 1 }], [5, '(idle)', [], { url: '', lineNumber: -1 }]], [[3, 70],
    [4, 20], [2, 10], [5, 100]])
  Object.assign(profile.nodes[2], { positionTicks: [{ line: 11, ticks: 3 }, { line: 12, ticks: 60 }] })
  const { busyMs, idleMs, functions, calls } = hotFunctions(JSON.stringify(profile), ITEM, deck).hot
  assert.deepEqual([busyMs, idleMs], [100, 100])
  assert.deepEqual(
    functions.map((
      { function: name, place, owner, selfMs, totalMs, line, source }
    ) => [name, place, owner, selfMs, totalMs, line, source?.[0].text]),
    [['sum', 'prices.js:10', 'app', 70, 90, 12, '/srv/app/prices.js'], ['hash', 'node:crypto:2', 'node', 20, 20, null,
      undefined], ['serve', 'app.js:3', 'app', 10, 100, null, '/srv/app/app.js']]
  )
  assert.deepEqual(calls.map(({ function: name, totalMs }) => [name, totalMs]), [['serve', 100], ['sum', 90], ['hash',
    20]])
})

test('a file that is no CPU profile is refused, whatever is in it', () => {
  for (const text of ['', 'null', '{}', '{"nodes":[]}', '[1]', '{"nodes":[{}]'])
    assert.throws(() => hotFunctions(text, ITEM, deck), { code: 'not-possible' }, text)
  const hostile = {
    nodes: [{ id: 1, children: [2, 1] }, { id: 2, callFrame: { functionName: {}, url: 7 },
      positionTicks: [null, { line: 'x', ticks: 1 }] }],
    samples: [2, 1],
    timeDeltas: ['a']
  }
  assert.equal(hotFunctions(JSON.stringify(hostile), ITEM, deck).hot.busyMs, 0)
})
