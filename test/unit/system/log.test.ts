import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { createLog } from '../../../server/system/log.ts'
import { tempFolder } from '../../support/folder.ts'

const AT = 1_764_000_000_000

test('writes each line at once, with its time, its level and the error with its stack and causes', () => {
  const file = path.join(tempFolder(), 'logs', 'master.log')
  const log = createLog(file, () => AT)
  const error = Object.assign(new TypeError('no such slot', { cause: new Error('it has ended') }), { code: 'gone' })
  log.error({ err: error, app: 'shop' }, 'a request failed')
  log.warn({ folder: '/srv' }, 'open to others')
  log.fatal({ err: 'a string' }, 'the master failed')
  const [first, second, third, ...rest] = linesOf(file)
  const { err: { stack, cause: { stack: causeStack, ...cause }, ...shown }, ...line } = first
  assert.deepEqual(line, { level: 50, time: AT, pid: process.pid, app: 'shop', msg: 'a request failed' })
  assert.deepEqual(shown, { type: 'TypeError', message: 'no such slot', code: 'gone' })
  assert.deepEqual(cause, { type: 'Error', message: 'it has ended' })
  assert.match(stack, /log\.test\.ts/)
  assert.match(causeStack, /log\.test\.ts/)
  assert.deepEqual(second, { level: 40, time: AT, pid: process.pid, folder: '/srv', msg: 'open to others' })
  assert.deepEqual(third, { level: 60, time: AT, pid: process.pid, err: 'a string', msg: 'the master failed' })
  assert.deepEqual(rest, [])
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('drops a line that cannot be written, and what comes after its end', () => {
  const lost = createLog('/proc/nothing/master.log')
  lost.error({}, 'nobody reads it')
  lost.close()
  const full = createLog('/dev/full')
  full.error({}, 'no space')
  const file = path.join(tempFolder(), 'master.log')
  const closed = createLog(file)
  closed.close()
  closed.error({}, 'too late')
  assert.equal(readFileSync(file, 'utf8'), '')
})

type Shown = { [name: string]: unknown, stack: string }

test('writes an error that JSON cannot tell', () => {
  const file = path.join(tempFolder(), 'master.log')
  const error = Object.assign(new Error('odd'), { size: 1n })
  createLog(file).error({ err: error }, 'failed')
  assert.equal(linesOf(file)[0].err, 'Error: odd')
})

function linesOf (file: string): { [name: string]: unknown, err: Shown & { cause: Shown } }[] {
  return readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
}
