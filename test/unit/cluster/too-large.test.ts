import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { tooLarge } from '../../../server/cluster/too-large.ts'

/** What the system says, and what is made of it. */
function explained (args: string[], env: Record<string, string | undefined>) {
  try {
    spawn(process.execPath, args, { env })
  } catch (error) {
    return tooLarge(error, args, env)
  }
  return assert.fail('it started')
}

test('the variable or argument that is too large for the system is named, without its value', () => {
  assert.equal(explained([], { A: 'b', BIG: 'x'.repeat(131_068), GONE: undefined })?.message,
    'the variable BIG has 131,072 bytes, and the system gives a program 131,071 at most in one: put it into a file that the app reads')
  assert.match(String(explained(['-e', 'x'.repeat(200_000)], {})?.message), /^argument 2 has 200,000 bytes/)
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`V${index}`, 'x'.repeat(100_000 + index)]))
  assert.match(String(explained([], many)?.message),
    /^its arguments and variables have 10,00\d,\d{3} bytes together, .*; the largest is the variable V99: put it/)
})

test('another error is what it was', () => {
  assert.equal(tooLarge(Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' }), [], {}), null)
})
