import assert from 'node:assert/strict'
import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, truncateSync,
  utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { createDrift } from '../../../server/releases/drift.ts'
import { tempFolder } from '../../support/folder.ts'

const LATER = Date.now() + 60_000

/** A release of two files whose workers have loaded them. */
async function loaded (options = {}) {
  const folder = tempFolder()
  const [main, lib] = ['main.js', 'lib.js'].map((name) => path.join(folder, name))
  writeFileSync(main, 'import "../lib.js"')
  writeFileSync(lib, 'export const one = 1')
  const drift = createDrift(options)
  drift.noteLoaded('r1', [main, lib], { id: 1, forkedAt: LATER })
  await drift.settled()
  assert.equal(drift.of('r1'), null)
  return { folder, main, lib, drift }
}

describe('drift', () => {
  for (const [what, change] of [['written', (file) => writeFileSync(file, 'export const one = 2')], [
    'written at the same length and time',
    (file) => {
      writeFileSync(file, 'export const one = 3')
      utimesSync(file, 1, 1)
    }
  ], ['removed', (file) => rmSync(file)], ['replaced by a folder', (file) => {
    rmSync(file)
    mkdirSync(file)
  }], ['replaced by a rename', (file) => {
    writeFileSync(`${file}.new`, 'export const one = 4')
    renameSync(`${file}.new`, file)
  }]] as [string, (file: string) => void][]) {
    test(`a file that is ${what} is a change`, async () => {
      const { drift, lib } = await loaded()
      change(lib)
      assert.deepEqual(drift.of('r1')?.files, [lib])
      const since = existsSync(lib) && statSync(lib).isFile()
        ? new Date(Math.min(statSync(lib).mtimeMs, statSync(lib).ctimeMs)).toISOString()
        : null
      assert.deepEqual([drift.of('r1'), drift.of('r2')], [{ kind: 'code', count: 1, files: [lib], since, by: null },
        null])
      assert.deepEqual([drift.knows('r1'), drift.knows('r2')], [true, false])
    })
  }

  for (const [what, change] of [['touched', (file) => utimesSync(file, new Date(), new Date())], ['linked once more',
    (file) => linkSync(file, `${file}.link`)], ['checked out again with the same content', (file) => {
    copyFileSync(file, `${file}.new`)
    rmSync(file)
    renameSync(`${file}.new`, file)
  }], ['changed and restored', (file) => {
    writeFileSync(file, 'else')
    writeFileSync(file, 'export const one = 1')
  }]] as [string, (file: string) => void][]) {
    test(`a file that is ${what} is none`, async () => {
      const { drift, lib } = await loaded()
      change(lib)
      assert.equal(drift.of('r1'), null)
      assert.equal(drift.of('r1'), null, 'nor on a second look')
    })
  }

  test('a file that was written after the fork counts as changed, as nobody knows what was loaded', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    // The time of a file has parts of a millisecond, which the clock does not have.
    const drift = createDrift({ time: () => Math.floor(statSync(file).mtimeMs) })
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: Date.now() - 5000 })
    assert.deepEqual(drift.of('r1')?.files, [file])
  })

  test('a clock that was set back behind the times of the files makes no late ones', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    const hourAgo = Date.now() - 3_600_000
    const drift = createDrift({ time: () => hourAgo })
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: hourAgo - 500 })
    assert.equal(drift.of('r1'), null)
    writeFileSync(file, '2')
    assert.deepEqual(drift.of('r1')?.files, [file])
  })

  test('a time in the future does not make a file a late one', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    utimesSync(file, LATER / 1000 + 900, LATER / 1000 + 900)
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: Date.now() + 100 })
    assert.equal(drift.of('r1'), null)
  })

  test('before its content could be read, another stamp is a change', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: LATER })
    utimesSync(file, 1, 1)
    assert.equal(drift.of('r1')?.count, 1)
  })

  test('one that is too large to be read is known by its stamp alone', async () => {
    const file = path.join(tempFolder(), 'large.js')
    writeFileSync(file, '')
    truncateSync(file, 33 * 1024 * 1024)
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: LATER })
    await drift.settled()
    assert.equal(drift.of('r1'), null)
    utimesSync(file, 1, 1)
    assert.equal(drift.of('r1')?.count, 1)
  })

  test('what cannot be compared within the time that there is counts as changed, and is compared the next time', async () => {
    let time = 0
    // Each question for the time takes 1 ms.
    const { drift, main, lib } = await loaded({ now: () => time++, readBudgetMs: 1 })
    for (const file of [main, lib]) utimesSync(file, 1, 1)
    assert.equal(drift.of('r1')?.count, 1)
    assert.equal(drift.of('r1'), null)
  })

  test('a deploy of the same release takes fingerprints anew, and hears no worker of before', async () => {
    const { drift, lib, main } = await loaded()
    writeFileSync(lib, 'export const one = 2')
    drift.renew('r1', 2)
    drift.noteLoaded('r1', [main, lib], { id: 1, forkedAt: LATER })
    assert.equal(drift.of('r1'), null)
    drift.noteLoaded('r1', [main, lib], { id: 2, forkedAt: LATER })
    await drift.settled()
    assert.equal(drift.of('r1'), null)
    writeFileSync(lib, 'export const one = 3')
    assert.equal(drift.of('r1')?.count, 1)
  })

  test('knows the files of each release by themselves, and forgets', async () => {
    const { drift, lib } = await loaded()
    writeFileSync(lib, 'export const one = 2')
    drift.noteLoaded('r2', [lib], { id: 1, forkedAt: LATER })
    assert.deepEqual([drift.of('r1')?.count, drift.of('r2')], [1, null])
    for (let n = 3; n < 20; n++) drift.noteLoaded(`r${n}`, [lib], { id: 1, forkedAt: LATER })
    writeFileSync(lib, 'export const one = 3')
    assert.deepEqual([drift.of('r2'), drift.of('r19')?.count], [null, 1], 'those of long ago')
  })

  test('takes anything for the names of files, and reads nothing but files', async () => {
    const folder = tempFolder()
    symlinkSync('/dev/zero', path.join(folder, 'endless.js'))
    symlinkSync('loop.js', path.join(folder, 'loop.js'))
    const drift = createDrift()
    for (const files of [null, 'app.js', { length: 9 }, [null, 7, {}, 'relative.js', '/with\0nul.js',
      `/${'x'.repeat(5000)}`, folder, '/dev/zero',
      ...['endless.js', 'loop.js', 'missing.js'].map((name) => path.join(folder, name))]])
    {
      drift.noteLoaded('r1', files, { id: 1, forkedAt: LATER })
    }
    await drift.settled()
    assert.equal(drift.of('r1'), null)
  })

  test('names five files and counts the others', async () => {
    const folder = tempFolder()
    const files = Array.from({ length: 9 }, (_, n) => path.join(folder, `${n}.js`))
    for (const file of files) writeFileSync(file, file)
    const drift = createDrift()
    drift.noteLoaded('r1', files, { id: 1, forkedAt: LATER })
    for (const file of files) writeFileSync(file, 'other')
    assert.deepEqual([drift.of('r1')?.count, drift.of('r1')?.files], [9, files.slice(0, 5)])
  })
})
