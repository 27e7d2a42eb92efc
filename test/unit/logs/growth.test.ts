import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { appendFileSync, writeFileSync, type watch } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { createGrowth } from '../../../server/logs/growth.ts'
import { liveFile } from '../../../server/logs/log-files.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

const LOG = { slot: 1, stream: 'stdout' } as const

function setUp (t: Pick<TestContext, 'after'>, { watchFile }: { watchFile?: (file: string) => EventEmitter } = {}) {
  const folder = tempFolder()
  const file = liveFile(folder, LOG)
  writeFileSync(file, '')
  const woken = [] as unknown[]
  let at = 0
  const growth = createGrowth({ folder, onAwake: (log) => {
    woken.push(log)
  }, now: () => at, watchFile: watchFile as typeof watch | undefined })
  t.after(growth.stop)
  growth.add(LOG)
  return { file, woken, growth, pass: (ms: number) => {
    at += ms
  } }
}

test('a log that is written is looked at, one that is quiet is not, until it is written again', async (t) => {
  const { file, woken, growth, pass } = setUp(t)
  for (let time = 0; time < 5; time++) {
    appendFileSync(file, 'line\n')
    pass(1500)
    assert.deepEqual(growth.awake(), [LOG])
  }
  pass(2500)
  growth.awake()
  assert.deepEqual(growth.awake(), [])
  appendFileSync(file, 'line\n')
  await until(() => woken.length > 0, 'the system to tell of it')
  assert.deepEqual([woken, growth.awake()], [[LOG], [LOG]])
})

test('a log that was written while it fell asleep is awake; so is one that cannot be watched', (t) => {
  const late = setUp(t, { watchFile: (file: string) => {
    appendFileSync(file, 'line\n')
    return Object.assign(new EventEmitter(), { close () {} })
  } })
  late.pass(2500)
  late.growth.awake()
  assert.deepEqual([late.woken, late.growth.awake()], [[LOG], [LOG]])

  const never = setUp(t, { watchFile: () => {
    throw Object.assign(new Error(), { code: 'ENOSPC' })
  } })
  for (let time = 0; time < 100; time++) {
    never.pass(2500)
    assert.deepEqual(never.growth.awake(), [LOG])
  }
})

test('looks again and again only while a log may grow', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const folder = tempFolder()
  writeFileSync(liveFile(folder, LOG), '')
  const looks = [] as unknown[]
  const pass = (count: number) => {
    looks.length = 0
    for (let time = 0; time < count; time++) t.mock.timers.tick(200)
    return looks.length
  }
  let at = 0
  let wake = () => {}
  const watchFile = ((_file: string, _options: object, onChange: () => void) => {
    wake = onChange
    return Object.assign(new EventEmitter(), { close () {} })
  }) as unknown as typeof watch
  const growth = createGrowth({ folder, onAwake () {}, onLook: (logs) => {
    looks.push(logs)
  }, now: () => at, watchFile })
  t.after(growth.stop)
  growth.start()
  assert.equal(pass(5), 0, 'no worker writes yet')
  growth.add(LOG)
  assert.equal(pass(5), 5)
  at = 2500
  assert.ok(pass(10) <= 2, 'it is quiet')
  assert.equal(pass(10), 0)
  wake()
  assert.equal(pass(5), 5)
})
