import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { trustedPrograms } from '../../../server/keeper/programs.ts'
import { tempFolder } from '../../support/folder.ts'

const OTHER = 54321
const notRoot = process.geteuid?.() !== 0 && 'only root can give a file away'

/** A folder with a node, and the code of clusterdeck. */
function version (top: string, name: string) {
  const folder = path.join(top, name)
  mkdirSync(folder)
  for (const file of ['node', 'cli.js']) writeFileSync(path.join(folder, file), '', { mode: 0o755 })
  return { node: path.join(folder, 'node'), script: path.join(folder, 'cli.js') }
}

describe('programs of the next master', () => {
  test('a link is followed to what it leads to now, and that is what runs', () => {
    const top = realpathSync(tempFolder())
    const [own, newer] = [version(top, '1'), version(top, '2')]
    const link = path.join(top, 'current')
    const wanted = { node: path.join(link, 'node'), script: path.join(link, 'cli.js') }
    symlinkSync('1', link)
    assert.deepEqual(trustedPrograms(wanted, own), { programs: own, distrust: null })
    rmSync(link)
    symlinkSync('2', link)
    assert.deepEqual(trustedPrograms(wanted, own), { programs: newer, distrust: null })
  })

  test('what is gone, or what anybody could write, is not run: the keeper has its own', () => {
    const top = realpathSync(tempFolder())
    const [own, newer] = [version(top, '1'), version(top, '2')]
    chmodSync(newer.script, 0o777)
    assert.deepEqual(trustedPrograms(newer, own), { programs: { node: newer.node, script: own.script },
      distrust: `${newer.script} is not run: ${newer.script} can be written by others (mode 0777)` })
    rmSync(newer.node)
    assert.equal(trustedPrograms({ ...own, node: newer.node }, own).distrust, `${newer.node} is gone (ENOENT)`)
    // It runs already: a second look would come too late.
    chmodSync(own.script, 0o777)
    assert.deepEqual(trustedPrograms(own, own), { programs: own, distrust: null })
  })

  test('nor what lies in a folder of somebody else, nor what their link has been turned to', { skip: notRoot }, () => {
    const top = realpathSync(tempFolder())
    const [own, theirs] = [version(top, '1'), version(top, '2')]
    const link = path.join(top, 'current')
    symlinkSync('2', link)
    chownSync(path.dirname(theirs.script), OTHER, OTHER)
    const wanted = { node: path.join(link, 'node'), script: path.join(link, 'cli.js') }
    const { programs, distrust } = trustedPrograms(wanted, own)
    assert.deepEqual(programs, own)
    assert.match(String(distrust), /belongs to another user \(uid 54321/)
  })
})
