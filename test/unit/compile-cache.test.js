import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { cacheFolder } from '../../server/compile-cache.js'
import { tempFolder } from '../support/folder.js'

describe('what Node has compiled is kept', () => {
  test('in a folder of this user alone', () => {
    const home = tempFolder()
    const folder = cacheFolder('abc', { HOME: home })
    assert.equal(folder, path.join(home, '.cache', 'clusterdeck', 'code', 'abc'))
    assert.equal(statSync(folder).mode & 0o077, 0)
    assert.equal(cacheFolder('abc', { HOME: home, XDG_CACHE_HOME: path.join(home, 'other') }), path.join(home, 'other', 'clusterdeck', 'code', 'abc'))
  })

  test('nowhere, if there is no home, or others can write there', () => {
    assert.equal(cacheFolder('abc', {}), null)
    const open = tempFolder()
    mkdirSync(path.join(open, '.cache', 'clusterdeck'), { recursive: true })
    chmodSync(path.join(open, '.cache', 'clusterdeck'), 0o777)
    assert.equal(cacheFolder('abc', { HOME: open }), null)
  })
})
