import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { cacheFolder } from '../../server/compile-cache.js'
import { CLI } from '../support/deck.ts'
import { PATIENCE_MS } from '../support/until.ts'
import { tempFolder } from '../support/folder.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

describe('what Node has compiled is kept', () => {
  test('in a folder of this user alone', () => {
    const home = tempFolder()
    const folder = cacheFolder('abc', { HOME: home })
    assert.equal(folder, path.join(home, '.cache', 'clusterdeck', 'code', 'abc'))
    assert.equal(statSync(folder).mode & 0o077, 0)
    assert.equal(cacheFolder('abc', { HOME: home, XDG_CACHE_HOME: path.join(home, 'other') }),
      path.join(home, 'other', 'clusterdeck', 'code', 'abc'))
  })

  test('nowhere, if there is no home, or others can write there', () => {
    assert.equal(cacheFolder('abc', {}), null)
    const open = tempFolder()
    mkdirSync(path.join(open, '.cache', 'clusterdeck'), { recursive: true })
    chmodSync(path.join(open, '.cache', 'clusterdeck'), 0o777)
    assert.equal(cacheFolder('abc', { HOME: open }), null)
  })

  test('nowhere, if no folder can be made there, and no start waits for that', () => {
    const home = tempFolder()
    const file = path.join(home, 'file')
    writeFileSync(file, '')
    const below = process.platform === 'linux' ? '/proc/nothing' : file
    for (const env of [{ XDG_CACHE_HOME: below }, { XDG_CACHE_HOME: below, HOME: home }, { XDG_CACHE_HOME: file,
      HOME: home }, { HOME: below }])
    {
      const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, '--version'], { env, encoding: 'utf8',
        timeout: PATIENCE_MS })
      assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, ''], JSON.stringify(env))
      assert.equal(cacheFolder('abc', env), null)
    }
  })
})
