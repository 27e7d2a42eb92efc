import assert from 'node:assert/strict'
import { PassThrough, Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { createPrefixed } from '../../../server/cli/prefixed.js'

/** @param {{ isTTY?: boolean, env?: Record<string, string> }} [terminal] */
function open ({ isTTY = false, env = {} } = {}) {
  const output = { stdout: '', stderr: '' }
  const stream = (/** @type {keyof typeof output} */ name) => Object.assign(new Writable({
    write (chunk, _encoding, done) {
      output[name] += chunk
      done()
    }
  }), { isTTY })
  return { output, ...createPrefixed(['shop', 'db'], { stdout: stream('stdout'), stderr: stream('stderr'), env }) }
}

test('each line has the name of its program in front, and moves no cursor', async () => {
  const { output, pass, say } = open()
  await pass('db', Readable.from(['one\ntw', 'o\r\n', '\u001b[31mred\u001b[0m \u001b]0;title\u0007\tend\n', 'é']), 'stdout')
  say('shop', 'is ready\nnow')
  assert.deepEqual(output, { stdout: 'db   | one\ndb   | two\ndb   | red   end\ndb   | é\n', stderr: 'shop | is ready now\n' })
})

test('names have a colour each on a terminal, unless somebody wants none', async () => {
  // eslint-disable-next-line no-control-regex
  const colours = (/** @type {string} */ text) => text.match(/\u001b\[\d+m/g)
  const { output, say } = open({ isTTY: true, env: { TERM: 'xterm' } })
  say('shop', 'a')
  say('db', 'b')
  assert.equal(new Set(colours(output.stderr)).size, 3, JSON.stringify(output.stderr))
  for (const env of /** @type {Record<string, string>[]} */ ([{ NO_COLOR: '1' }, { TERM: 'dumb' }])) {
    const plain = open({ isTTY: true, env })
    plain.say('shop', 'a')
    assert.equal(plain.output.stderr, 'shop | a\n')
  }
})

test('a line without an end is shown in parts', async () => {
  const { output, pass } = open()
  await pass('db', Readable.from(['x'.repeat(100_000), '\n']), 'stdout')
  assert.deepEqual(output.stdout.split('\n').map((line) => line.length), [65_536 + 7, 100_000 - 65_536 + 7, 0])
})

test('a program is read no faster than its lines are taken, and to its end where nobody takes them', async () => {
  const source = new PassThrough()
  /** @type {((error?: Error) => void)[]} */
  const taken = []
  const stdout = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => { taken.push(done) } })
  const passing = createPrefixed(['db'], { stdout, stderr: stdout, env: {} }).pass('db', source, 'stdout')
  source.write('one\n')
  await new Promise((resolve) => setImmediate(resolve))
  source.write('two\n')
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(taken.length, 1)
  stdout.on('error', () => {})
  taken[0](new Error('EPIPE'))
  source.end('three\n')
  await passing
})
