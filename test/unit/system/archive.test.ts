import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ARCHIVE, leadsInside, plainName, tameMode, whyNoName } from '../../../server/system/archive.ts'

test('a link leads inside where it goes up no further than the top, and then down alone', () => {
  const inside = [['a', 'b'], ['a', './b'], ['a/b', '../c'], ['a/b/c', '../..'], ['a/b/c', '../../d/e/'], ['a', '.']]
  const outside = [['a', '..'], ['a', '../b'], ['a/b', '../../c'], ['a', '/b'], ['a', ''], ['a/b', 'c/../d'], ['a',
    'b/./../../c'], ['a', 'b//c'], ['a', 'b\0c']]
  for (const [name, target] of inside) assert.equal(leadsInside(name, target), true, `${name} to ${target}`)
  for (const [name, target] of outside) assert.equal(leadsInside(name, target), false, `${name} to ${target}`)
})

test('of a mode group and others only lose bits, and nothing of another user is left', () => {
  assert.deepEqual(
    [[0o6777, false], [0o644, false], [0o600, false], [0o750, false], [0o100, false], [0o1777, true], [0o700, true], [
      0o744,
      true
    ], [undefined, false], [undefined, true]].map(([mode, isFolder]) => tameMode(mode as number, Boolean(isFolder))),
    [0o755, 0o644, 0o600, 0o750, 0o700, 0o755, 0o700, 0o700, 0o644, 0o755]
  )
  for (let mode = 0; mode <= 0o7777; mode++) {
    for (const isFolder of [true, false]) assert.equal(tameMode(mode, isFolder) & ~mode & 0o7077, 0, mode.toString(8))
  }
})

test('a name is what is in the folder, and no more', () => {
  for (const name of ['a', 'a/b', '.env', 'a b/ü', '...']) assert.equal(whyNoName(name, ARCHIVE), null, name)
  for (const name of ['', '/a', 'a/', 'a//b', '..', 'a/../b', './a', 'a\0', 'a\nb'])
    assert.notEqual(whyNoName(name, ARCHIVE), null, JSON.stringify(name))
  assert.deepEqual(['./a/b/', './', '.', '././a', 'a'].map(plainName), ['a/b', '', '', 'a', 'a'])
})
