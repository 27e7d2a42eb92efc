import assert from 'node:assert/strict'
import { copyFileSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { createDrift } from '../../../server/releases/drift.js'
import { tempFolder } from '../../support/folder.js'

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
  assert.equal(drift.isDrifted('r1'), false)
  return { folder, main, lib, drift }
}

describe('drift', () => {
  for (const [what, change] of /** @type {[string, (file: string) => void][]} */ ([
    ['written', (file) => writeFileSync(file, 'export const one = 2')],
    ['written at the same length and time', (file) => {
      writeFileSync(file, 'export const one = 3')
      utimesSync(file, 1, 1)
    }],
    ['removed', (file) => rmSync(file)],
    ['replaced by a folder', (file) => {
      rmSync(file)
      mkdirSync(file)
    }],
    ['replaced by a rename', (file) => {
      writeFileSync(`${file}.new`, 'export const one = 4')
      renameSync(`${file}.new`, file)
    }]
  ])) {
    test(`a file that is ${what} is a change`, async () => {
      const { drift, lib } = await loaded()
      change(lib)
      assert.deepEqual(drift.changed('r1'), [lib])
      assert.deepEqual(drift.look(['r1', 'r2']), { r1: { count: 1, files: [lib] } })
    })
  }

  for (const [what, change] of /** @type {[string, (file: string) => void][]} */ ([
    ['touched', (file) => utimesSync(file, new Date(), new Date())],
    ['linked once more', (file) => linkSync(file, `${file}.link`)],
    ['checked out again with the same content', (file) => {
      copyFileSync(file, `${file}.new`)
      rmSync(file)
      renameSync(`${file}.new`, file)
    }],
    ['changed and restored', (file) => {
      writeFileSync(file, 'else')
      writeFileSync(file, 'export const one = 1')
    }]
  ])) {
    test(`a file that is ${what} is none`, async () => {
      const { drift, lib } = await loaded()
      change(lib)
      assert.equal(drift.isDrifted('r1'), false)
      assert.equal(drift.isDrifted('r1'), false, 'nor on a second look')
    })
  }

  test('a file that was written after the fork counts as changed, as nobody knows what was loaded', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: Date.now() - 5000 })
    assert.deepEqual(drift.changed('r1'), [file])
  })

  test('a clock that was set back behind the times of the files makes no late ones', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    const hourAgo = Date.now() - 3_600_000
    const drift = createDrift({ time: () => hourAgo })
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: hourAgo - 500 })
    assert.deepEqual(drift.changed('r1'), [])
    writeFileSync(file, '2')
    assert.deepEqual(drift.changed('r1'), [file])
  })

  test('a time in the future does not make a file a late one', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    utimesSync(file, LATER / 1000 + 900, LATER / 1000 + 900)
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: Date.now() + 100 })
    assert.equal(drift.isDrifted('r1'), false)
  })

  test('before its content could be read, another stamp is a change', () => {
    const file = path.join(tempFolder(), 'app.js')
    writeFileSync(file, '1')
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: LATER })
    utimesSync(file, 1, 1)
    assert.equal(drift.isDrifted('r1'), true)
  })

  test('one that is too large to be read is known by its stamp alone', async () => {
    const file = path.join(tempFolder(), 'large.js')
    writeFileSync(file, '')
    truncateSync(file, 33 * 1024 * 1024)
    const drift = createDrift()
    drift.noteLoaded('r1', [file], { id: 1, forkedAt: LATER })
    await drift.settled()
    assert.equal(drift.isDrifted('r1'), false)
    utimesSync(file, 1, 1)
    assert.equal(drift.isDrifted('r1'), true)
  })

  test('what cannot be compared within the time that there is counts as changed, and is compared the next time', async () => {
    let time = 0
    // Each question for the time takes 1 ms.
    const { drift, main, lib } = await loaded({ now: () => time++, readBudgetMs: 1 })
    for (const file of [main, lib]) utimesSync(file, 1, 1)
    assert.equal(drift.changed('r1').length, 1)
    assert.equal(drift.changed('r1').length, 0)
  })

  test('a deploy of the same release takes fingerprints anew, and hears no worker of before', async () => {
    const { drift, lib, main } = await loaded()
    writeFileSync(lib, 'export const one = 2')
    drift.renew('r1', 2)
    drift.noteLoaded('r1', [main, lib], { id: 1, forkedAt: LATER })
    assert.equal(drift.isDrifted('r1'), false)
    drift.noteLoaded('r1', [main, lib], { id: 2, forkedAt: LATER })
    await drift.settled()
    assert.equal(drift.isDrifted('r1'), false)
    writeFileSync(lib, 'export const one = 3')
    assert.equal(drift.isDrifted('r1'), true)
  })

  test('knows the files of each release by themselves, and forgets', async () => {
    const { drift, lib } = await loaded()
    writeFileSync(lib, 'export const one = 2')
    drift.noteLoaded('r2', [lib], { id: 1, forkedAt: LATER })
    assert.deepEqual([drift.isDrifted('r1'), drift.isDrifted('r2')], [true, false])
    drift.forget('r1')
    assert.equal(drift.isDrifted('r1'), false)
    for (let n = 3; n < 20; n++) drift.noteLoaded(`r${n}`, [lib], { id: 1, forkedAt: LATER })
    writeFileSync(lib, 'export const one = 3')
    assert.deepEqual([drift.isDrifted('r2'), drift.isDrifted('r19')], [false, true], 'those of long ago')
  })

  test('takes anything for the names of files, and reads nothing but files', async () => {
    const folder = tempFolder()
    symlinkSync('/dev/zero', path.join(folder, 'endless.js'))
    symlinkSync('loop.js', path.join(folder, 'loop.js'))
    const drift = createDrift()
    for (const files of [null, 'app.js', { length: 9 }, [null, 7, {}, 'relative.js', '/with\0nul.js', `/${'x'.repeat(5000)}`, folder, '/dev/zero', ...['endless.js', 'loop.js', 'missing.js'].map((name) => path.join(folder, name))]]) {
      drift.noteLoaded('r1', files, { id: 1, forkedAt: LATER })
    }
    await drift.settled()
    assert.equal(drift.isDrifted('r1'), false)
  })

  test('names five files and counts the others', async () => {
    const folder = tempFolder()
    const files = Array.from({ length: 9 }, (_, n) => path.join(folder, `${n}.js`))
    for (const file of files) writeFileSync(file, file)
    const drift = createDrift()
    drift.noteLoaded('r1', files, { id: 1, forkedAt: LATER })
    for (const file of files) writeFileSync(file, 'other')
    assert.deepEqual(drift.look(['r1']), { r1: { count: 9, files: files.slice(0, 5) } })
  })
})
