import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneLine, readableText } from '../../../server/system/one-line.ts'

test('text of an app can neither move a cursor, begin another line nor turn one around', () => {
  assert.equal(oneLine('\u001b[31mred\u001b[0m\r\nnext\u0007\u009b2J line\u2028end'), 'red next  line end')
  assert.equal(oneLine('user\u202Etxt.exe\u2066\u200f'), 'user txt.exe ')
})

test('many lines stay lines', () => {
  assert.equal(readableText('\u001b[31mred\u001b[0m\r\n\tnext\u0007\u009b2J\u202e\r 50 %\u001b]0;title\u0007'),
    'red\n\tnext\n 50 %')
})
