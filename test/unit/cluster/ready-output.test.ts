import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { awaitReadyLine } from '../../../server/cluster/ready-output.ts'
import { readyLineOf } from '../../../server/lifecycle/ready-line.ts'
import { tempFolder } from '../../support/folder.ts'

/** No process has this number. */
const GONE = 2 ** 30

function setUp (t: TestContext, wanted: string) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const file = path.join(tempFolder(), 'log')
  fs.writeFileSync(file, 'Listening on 1, as somebody before has written\n')
  return { file, ...startWorker(t, file, wanted) }
}

function startWorker (t: TestContext, file: string, wanted: string) {
  const seen = { isAwaited: true, found: 0, closed: 0 }
  const stdout = fs.openSync(file, 'a+')
  t.after(() => {
    if (!seen.closed) fs.closeSync(stdout)
  })
  const { output, startedAs } = awaitReadyLine({ stdout, stderr: 'inherit', close () {
    seen.closed++
    fs.closeSync(stdout)
  } }, wanted, { isAwaited: () => seen.isAwaited, onFound: () => {
    seen.found++
  } })
  output.close()
  return {
    seen,
    startedAs,
    /** `anew`: by a descriptor that it has opened itself */
    write (text: string, how: 'itself' | 'anew' = 'anew') {
      fs.writeFileSync(how === 'itself' ? stdout : file, text, { flag: 'a' })
      t.mock.timers.tick(50)
      return [seen.found, seen.closed]
    }
  }
}

test('the line is found once it has an end, and once', (t) => {
  const { write } = setUp(t, 'Listening on')
  assert.deepEqual(write('boots\nListen'), [0, 0])
  assert.deepEqual(write('ing on 80'), [0, 0])
  assert.deepEqual(write('\nmore\n'), [1, 1])
  assert.deepEqual(write('Listening on 81\n'), [1, 1])
})

test('a line that another worker writes into the same log does not count, also where it is its last one', {
  skip: process.platform !== 'linux' && 'the system does not tell who has written what'
}, (t) => {
  const old = setUp(t, 'Listening on')
  old.startedAs(process.pid)
  assert.deepEqual(old.write('Listening on 80\n', 'itself'), [1, 0])
  const next = startWorker(t, old.file, 'Listening on')
  next.startedAs(process.pid)
  old.write('Listening on 80\n', 'itself')
  old.startedAs(GONE)
  next.write('boots\n', 'itself')
  old.write('Listening on 80\nends\n', 'itself')
  assert.deepEqual([next.seen.found, old.seen.closed], [0, 0])
  assert.deepEqual(next.write('Listening on 80\n', 'itself'), [1, 0])
  assert.equal(old.seen.closed, 1, 'it has ended')
})

test('a line that none of them has written by its own descriptor counts a little later', (t) => {
  const { file } = setUp(t, 'Listening on')
  const { seen, write } = startWorker(t, file, 'Listening on')
  assert.deepEqual(write('Listening on 80\n'), [0, 0])
  for (let looks = 0; looks < 20; looks++) t.mock.timers.tick(20)
  assert.equal(seen.found, 1)
})

test('a line that is too long to be looked at does not hide the next one', (t) => {
  const { write } = setUp(t, '/^Listening on \\d+$/')
  assert.deepEqual(write('x'.repeat(200_000)), [0, 0])
  assert.deepEqual(write('\n\u001b[32mListening on 80\u001b[0m\n'), [1, 1])
})

test('nobody looks any more once the worker is not awaited', (t) => {
  const { seen, write } = setUp(t, 'Listening on')
  seen.isAwaited = false
  assert.deepEqual(write('Listening on 80\n'), [0, 1])
})

test('a text is looked for as it is, and what is between slashes is a regular expression', () => {
  assert.ok(readyLineOf('[ready]')('is [ready]') && !readyLineOf('[ready]')('y'))
  assert.ok(readyLineOf('/LISTENING on \\d/i')('listening on 8') && !readyLineOf('/^ready/')('not ready'))
  assert.ok(readyLineOf('/health')('GET /health'))
  assert.throws(() => readyLineOf('/a(/'), SyntaxError)
})
