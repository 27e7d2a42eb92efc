import assert from 'node:assert/strict'
import { Session } from 'node:inspector/promises'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { toCallTree, type Frame } from '../../../server/diagnostics/api-call-tree.ts'
import { profileOf } from '../../support/cpu-profile.ts'

function shape ({ name, selfMs, totalMs, children }: Frame): unknown[] {
  return [name, selfMs, totalMs, ...children.map(shape)]
}

test('time is added up from the samples, largest first, without the time in which nothing ran', () => {
  const { root, idleMs } = toCallTree(
    profileOf([[1, '(root)', [2, 4, 5]], [2, 'small', [3]], [3, 'leaf'], [4, 'large'], [5, '(idle)']], [[2, 1], [5,
      100], [3, 2], [4, 9], [2, 1]])
  )
  assert.deepEqual(shape(root), ['All', 0, 13, ['large', 9, 9], ['small', 2, 4, ['leaf', 2, 2]]])
  assert.equal(idleMs, 100)
})

test('two nodes of one function below one caller are one frame; of other callers, or of another line, they are not', () => {
  const place = { url: 'file:///a.js', lineNumber: 7 }
  const { root } = toCallTree(
    profileOf([[1, '(root)', [2, 3, 4, 5]], [2, 'f', [6], place], [3, 'f', [7], place], [4, 'f', [], { ...place,
      lineNumber: 8 }], [5, 'g', [8]], [6, 'h', [], place], [7, 'h', [], place], [8, 'f', [], place]], [[6, 1], [7, 2],
      [2, 4], [4, 3], [8, 1]])
  )
  assert.deepEqual(shape(root), ['All', 0, 11, ['f', 4, 7, ['h', 3, 3]], ['f', 3, 3], ['g', 0, 1, ['f', 1, 1]]])
})

test('a function that calls itself has its time once; the hottest comes first', () => {
  const at = (lineNumber: number) => ({ url: 'file:///srv/app/lib/walk.js', lineNumber })
  const { functions } = toCallTree(
    profileOf([[1, '(root)', [2]], [2, 'walk', [3], at(4)], [3, 'walk', [4], at(4)], [4, 'hash', [], at(9)]], [[2, 2], [
      3,
      3
    ], [4, 10]]),
    { folder: '/srv/app' }
  )
  assert.deepEqual(functions.map(({ name, place, selfMs, totalMs }) => [name, place, selfMs, totalMs]), [['hash',
    'lib/walk.js:10', 10, 10], ['walk', 'lib/walk.js:5', 5, 15]])
})

test('whose a function is, and where it is', () => {
  const urls = ['', 'node:fs', 'file:///srv/app/node_modules/express/lib/a.js', 'file:///srv/app/my%20lib/b.js',
    'file:///elsewhere/100%.js']
  const nodes: Parameters<typeof profileOf>[0] = urls.map((url,
    index) => [index + 2, index === 0 ? '(garbage collector)' : '', [], { url, lineNumber: index === 0 ? -1 : 1 }]
  )
  const samples: [number, number][] = urls.map((_, index) => [index + 2, 9 - index])
  const { functions } = toCallTree(profileOf([[1, '(root)', [2, 3, 4, 5, 6]], ...nodes], samples), {
    folder: '/srv/app'
  })
  assert.deepEqual(functions.map(({ name, place, owner }) => [name, place, owner]), [['(garbage collector)', '',
    'engine'], ['(anonymous)', 'node:fs:2', 'node'], ['(anonymous)', 'node_modules/express/lib/a.js:2', 'package'], [
    '(anonymous)',
    'my lib/b.js:2',
    'app'
  ], ['(anonymous)', '/elsewhere/100%.js:2', 'app']])
  assert.equal(functions[3].path, '/srv/app/my lib/b.js:2')
})

test('names show what would hide or reorder them, and have an end', () => {
  const { functions: [{ name, place }] } = toCallTree(
    profileOf([[1, '(root)', [2]], [2, `\u001b[2Jevil\u202e${'x'.repeat(500)}`, [], { url: 'file:///a\u0000b.js',
      lineNumber: 0 }]], [[2, 1]])
  )
  assert.match(name, /^evil<U\+202E>x{190,}$/)
  assert.equal(place, '/a\u2400b.js:1')
})

test('nodes that are no tree, and a stack of any depth, come to an end', () => {
  const loop = profileOf([[1, '(root)', [2]], [2, 'a', [3]], [3, 'b', [2, 1, 99]]], [[2, 1], [3, 1], [77, 5]])
  assert.deepEqual(shape(toCallTree(loop).root), ['All', 0, 2, ['a', 1, 2, ['b', 1, 1]]])
  const count = 50_000
  const deep = profileOf(
    Array.from({ length: count }, (_, index) => [index + 1, `f${index}`, index === count - 1 ? [] : [index + 2]]),
    [[count, 5]]
  )
  assert.equal(toCallTree(deep).root.totalMs, 5)
  assert.ok(toCallTree(deep).functions.length <= 300)
})

test('what is no profile is refused', () => {
  for (const file of [null, 3, [], {}, { nodes: [] }, { nodes: [{ id: 1 }] }, { nodes: 'x', samples: [] }])
    assert.throws(() => toCallTree(file), { name: 'TypeError', message: 'This file is no CPU profile.' })
})

test('no child is longer than its parent, whatever the process has written', () => {
  const anything = fc.oneof(fc.integer({ min: 0, max: 12 }), fc.double(), fc.string(), fc.constant(null))
  const node = fc.record({ id: anything, children: fc.oneof(fc.array(anything), anything),
    callFrame: fc.oneof(anything,
      fc.record({ functionName: anything, url: anything, lineNumber: anything, columnNumber: anything })) })
  fc.assert(
    fc.property(
      fc.record({ nodes: fc.array(fc.oneof(node, fc.constant(null)), { minLength: 1 }), samples: fc.array(anything),
        timeDeltas: fc.oneof(fc.array(anything), anything), startTime: anything, endTime: anything }),
      (profile) => {
        const waiting = [toCallTree(profile).root]
        for (const { totalMs, selfMs, children } of waiting) {
          assert.ok(totalMs >= selfMs && selfMs >= 0)
          assert.ok(children.reduce((sum, child) => sum + child.totalMs, selfMs) <= totalMs * 1.001 + 1e-6)
          waiting.push(...children)
        }
      }
    )
  )
})

test('a real profile tells which function was hot', async () => {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
  burnTime(200)
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  const { functions, root } = toCallTree(profile)
  const hot = functions.find(({ name }) => name === 'burnTime')
  assert.ok(hot && hot.totalMs > 20 && hot.totalMs <= root.totalMs, JSON.stringify(functions.slice(0, 5)))
  assert.match(hot.place, /call-tree\.test\.ts:\d+$/)
})

/** A busy machine may give none of a time to this process. `ms`: of CPU time. */
function burnTime (ms: number) {
  const before = process.cpuUsage()
  let sum = 0
  while (process.cpuUsage(before).user < ms * 1000) for (let index = 0; index < 1000; index++) sum += Math.sqrt(index)
  return sum
}
