import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeText } from '../../../server/lifecycle/drift.ts'
import { createInPlace } from '../../../server/releases/in-place.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { present } from '../../support/present.ts'
import type { Drift, Release } from '../../../server/lifecycle/state.ts'
import type { Item } from '../../../server/releases/catalogue.ts'

const AT = '2026-01-02T03:04:05.000Z'
const CHANGE: Drift = { kind: 'code', count: 1, files: ['/srv/app.js'], since: AT, by: null }
const BY_R2 = { kind: 'code', count: 0, files: [], since: AT, by: 'r2' }
const REWRITTEN = { kind: 'folder' as const, count: 1, files: ['.next/BUILD_ID'], since: AT, by: null }
const clean = (commit: string) => ({ git: { commit: commit.repeat(40), isDirty: false } })

type Differs = Parts<Release> & { rewritten?: Drift | null, sameFilesUntil?: string }

/**
 * `releases`: oldest first, by id: how they differ from a plain folder without git; `rewritten`: how other files of it
 * have changed; `seen`: of which the files are known to have changed; of which files are known.
 */
function inPlace (releases: Record<string, Differs>,
  { changed = [], known = [] }: { changed?: string[], known?: string[] } = {})
{
  const items = Object.entries(releases).map(([id, { rewritten = null, sameFilesUntil, ...fields }]) =>
    fake<Item>({ rewritten, sameFilesUntil,
      release: { id, mode: 'live', path: '/srv', git: null, lockFile: null, package: null, createdAt: AT, ...fields } })
  )
  return createInPlace({
    catalogue: { find: (id) => items.find(({ release }) => release.id === id), newestFirst: () => items.toReversed() },
    drift: { of: (id) => changed.includes(id) ? CHANGE : null, knows: (id) =>
      known.includes(id) || changed.includes(id) }
  })
}

describe('a release whose folder was changed in place', () => {
  test('is known by the files that its workers have loaded', () => {
    const { look, changeOf } = inPlace({ r1: {}, r2: {} }, { changed: ['r1'], known: ['r2'] })
    assert.deepEqual(look(['r1', 'r2', 'r3']), { r1: CHANGE })
    assert.deepEqual([changeOf('r1'), changeOf('r2')], [CHANGE, null])
  })

  for (const [what, before, after, isChanged] of [['a later deploy from the same folder', {}, {}, true], [
    'a later deploy of another commit',
    clean('a'),
    clean('b'),
    true
  ], ['a later deploy of the same commit', clean('a'), clean('a'), false], [
    'a later deploy of the same commit with changed files',
    clean('a'),
    { git: { ...clean('a').git, isDirty: true } },
    true
  ], ['a later deploy of the same commit with other packages', { ...clean('a'), lockFile: 'sha256:1' }, { ...clean('a'),
    lockFile: 'sha256:2' }, true], ['a later deploy from another folder', {}, { path: '/srv2' }, false], [
    'a later copy',
    {},
    { mode: 'folder', path: '/data/r2' },
    false
  ]] as [string, Differs, Differs, boolean][]) {
    test(`where no master has seen its files, by ${what}: ${isChanged}`, () => {
      const { look, changeOf } = inPlace({ r1: before, r2: after })
      assert.deepEqual(look(['r1', 'r2']), isChanged ? { r1: BY_R2 } : {})
      assert.deepEqual([changeOf('r1'), changeOf('r2')], [isChanged ? BY_R2 : null, null])
    })
  }

  test('is what it was where later deploys had the same files and packages, but for those after them', () => {
    const { changeOf } = inPlace({ r1: { sameFilesUntil: 'r3' }, r2: {}, r3: {} })
    assert.equal(changeOf('r1'), null)
    assert.equal(inPlace({ r1: { sameFilesUntil: 'r2' }, r2: {}, r3: {} }).changeOf('r1')?.by, 'r3')
    assert.equal(inPlace({ r1: { sameFilesUntil: 'r3' }, r2: { lockFile: 'sha256:1' }, r3: {} }).changeOf('r1')?.by,
      'r2')
    assert.equal(inPlace({ r1: { sameFilesUntil: 'r9' }, r2: {} }).changeOf('r1')?.by, 'r2')
  })

  test('names the first of the later deploys', () => {
    const change = present(inPlace({ r1: {}, r2: {}, r3: {} }).changeOf('r1'))
    assert.equal(changeText('r1', change), 'r2 was deployed from the same folder later')
  })

  test('does not come back after a deploy of another commit, even if the files that its workers have loaded are the same', () => {
    const { look, changeOf } = inPlace({ r1: clean('a'), r2: clean('b') }, { known: ['r1'] })
    assert.deepEqual([look(['r1']), changeOf('r1')], [{}, BY_R2])
  })

  test('comes back where only variables were changed', () => {
    assert.equal(inPlace({ r1: {}, r2: {} }, { known: ['r1'] }).changeOf('r1'), null)
  })

  test('may have other files that no worker had loaded, which is said only where its code is the same', () => {
    const { look, changeOf } = inPlace({ r1: { rewritten: REWRITTEN }, r2: { rewritten: REWRITTEN }, r3: {} }, {
      changed: ['r1'],
      known: ['r2', 'r3']
    })
    assert.deepEqual(look(['r1', 'r2', 'r3']), { r1: CHANGE, r2: REWRITTEN })
    assert.deepEqual([changeOf('r1'), changeOf('r2'), changeOf('r3')], [CHANGE, REWRITTEN, null])
  })

  test('is never a copy, nor an unknown one', () => {
    const { changeOf } = inPlace({ r1: { mode: 'folder' }, r2: { mode: 'folder' } })
    assert.deepEqual([changeOf('r1'), changeOf('r9')], [null, null])
  })
})
