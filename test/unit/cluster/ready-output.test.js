import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { awaitReadyLine } from '../../../server/cluster/ready-output.js'
import { readyLineOf } from '../../../server/lifecycle/ready-line.js'
import { tempFolder } from '../../support/folder.js'

/** @param {import('node:test').TestContext} t @param {string} wanted */
function setUp (t, wanted) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const file = path.join(tempFolder(), 'log')
  fs.writeFileSync(file, 'Listening on 1, as somebody before has written\n')
  const seen = { isAwaited: true, found: 0, closed: 0 }
  const output = { stdout: fs.openSync(file, 'a+'), stderr: /** @type {const} */ ('inherit'), close () { seen.closed++ } }
  t.after(() => fs.closeSync(output.stdout))
  awaitReadyLine(output, wanted, { isAwaited: () => seen.isAwaited, onFound: () => { seen.found++ } }).close()
  return {
    seen,
    write (/** @type {string} */ text) {
      fs.appendFileSync(file, text)
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
