import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { createPrefixed } from '../../../server/cli/prefixed.ts'

function open ({ isTTY = false, env = {} }: { isTTY?: boolean, env?: Record<string, string> } = {}) {
  const output = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof output) =>
    Object.assign(new Writable({ write (chunk, _encoding, done) {
      output[name] += chunk
      done()
    } }), { isTTY })
  return { output, ...createPrefixed(['shop', 'db'], { stdout: stream('stdout'), stderr: stream('stderr'), env }) }
}

test('each line has the name of its program in front, and moves no cursor', async () => {
  const { output, show, say } = open()
  await show('db', 'stdout', ['one', '\u001b[31mred\u001b[0m \u001b]0;title\u0007\tend', 'é'])
  await show('db', 'stderr', ['two'])
  say('shop', 'is ready\nnow')
  assert.deepEqual(output, { stdout: 'db   | one\ndb   | red   end\ndb   | é\n',
    stderr: 'db   | two\nshop | is ready now\n' })
})

test('names have a colour each on a terminal, unless somebody wants none', async () => {
  const colours = (text: string) => text.match(/\u001b\[\d+m/g)
  const { output, say } = open({ isTTY: true, env: { TERM: 'xterm' } })
  say('shop', 'a')
  say('db', 'b')
  assert.equal(new Set(colours(output.stderr)).size, 3, JSON.stringify(output.stderr))
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }] as Record<string, string>[]) {
    const plain = open({ isTTY: true, env })
    plain.say('shop', 'a')
    assert.equal(plain.output.stderr, 'shop | a\n')
  }
})

test('lines are shown no faster than they are taken, and are dropped where nobody takes them', async () => {
  const taken: ((error?: Error) => void)[] = []
  const stdout = new Writable({ write: (_chunk, _encoding, done) => {
    taken.push(done)
  } })
  stdout.on('error', () => {})
  let isShown = false
  const showing = createPrefixed(['db'], { stdout, stderr: stdout, env: {} }).show('db', 'stdout', ['one']).then(() => {
    isShown = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([taken.length, isShown], [1, false])
  taken[0](new Error('EPIPE'))
  await showing
})
