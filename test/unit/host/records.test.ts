import assert from 'node:assert/strict'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createRecords, type AppRecord } from '../../../server/host/records.ts'
import { tempFolder } from '../../support/folder.ts'
import { readRecords } from '../../support/records.ts'
import { fake } from '../../support/fake.ts'
import { until } from '../../support/until.ts'

function setUp () {
  const folder = tempFolder()
  const problems: (string | null)[] = []
  const logged: string[] = []
  const records = createRecords({ folder, log: fake({ error (_: object, text: string) {
    logged.push(text)
  } }), onProblem: (reason) => problems.push(reason), tryAgainMs: 20 })
  const record = (name: string): AppRecord => ({ version: 1, id: `id-of-${name}`, name, dataDir: '/srv',
    wish: 'running', order: { cwd: '/srv', flags: {}, env: { KEY: 'value' }, dependsOn: [] }, runs: null })
  return { folder, records, record, problems, logged, place: path.join(folder, 'apps') }
}

test('each app has a file that only its user can read, until it is removed', async () => {
  const { folder, records, record, place } = setUp()
  assert.deepEqual(records.read(), [])
  for (const name of ['shop', 'mail']) records.save(record(name))
  records.save({ ...record('shop'), wish: 'stopped' })
  for (const name of ['shop', 'mail']) await records.stored(`id-of-${name}`)
  assert.deepEqual(records.read().map(({ name, wish }) => [name, wish]).sort(), [['mail', 'running'], ['shop',
    'stopped']])
  assert.equal(statSync(path.join(place, 'id-of-shop.json')).mode & 0o777, 0o600)
  assert.equal(statSync(place).mode & 0o777, 0o700)
  records.remove('id-of-shop')
  await records.stored('id-of-shop')
  assert.deepEqual(readRecords(folder), [record('mail')])
})

test('who saves hears why the disk does not take it; it is tried again until it does, the newest', async () => {
  const { folder, records, record, problems, place } = setUp()
  records.read()
  rmSync(place, { recursive: true })
  writeFileSync(place, '')
  records.save(record('shop'))
  await assert.rejects(records.stored('id-of-shop'), { code: 'not-stored', message: /ENOTDIR/ })
  records.save({ ...record('shop'), wish: 'stopped' })
  await assert.rejects(records.stored('id-of-shop'), { code: 'not-stored' })
  assert.equal(records.isStored('id-of-shop'), false)
  rmSync(place)
  mkdirSync(place)
  await until(() => problems.includes(null), 'the disk to take it')
  // Whoever asks now hears nothing of what has been.
  await records.stored('id-of-shop')
  assert.deepEqual(readRecords(folder).map(({ wish }) => wish), ['stopped'])
  assert.deepEqual(problems, ['ENOTDIR', null])
  await records.close()
})

test('a record under the name of another one is none', async () => {
  const { records, record, place, logged } = setUp()
  records.read()
  writeFileSync(path.join(place, 'other.json'), JSON.stringify(record('shop')))
  assert.deepEqual(records.read().length, 0)
  assert.match(logged.join('\n'), /cannot be read/)
})
