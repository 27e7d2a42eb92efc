import assert from 'node:assert/strict'
import { test } from 'node:test'
import { excerpt } from '../../../server/cluster/app-messages.ts'

test('what is short is kept as it is', () => {
  for (const value of [null, true, 1.5, '', 'text', [], {}, [1, [2, { a: null, b: ['é'] }]],
    JSON.parse('{"__proto__": {"toString": 1}}')])
  {
    assert.deepEqual(excerpt(value), value)
  }
})

test('what is long is cut wherever it is so, and says so', () => {
  assert.deepEqual(excerpt('x'.repeat(1e6)), `${'x'.repeat(2000)}…`)
  const { first, text, ...others } = Object(excerpt({ first: 1, text: 'x'.repeat(1e6), last: 2 }))
  assert.deepEqual([first, others], [1, { '…': '…' }])
  assert.match(text, /^x{1900,2000}…$/)
  for (const value of [Array(1e6).fill(7), Object.fromEntries(Array(1e5).fill(0).map((_, n) => [`key ${n}`, n])),
    Array(1000).fill('x'.repeat(1000)), { ['k'.repeat(1e6)]: 1 }])
  {
    const text = JSON.stringify(excerpt(value))
    assert.ok(text.length < 4000, `${text.length} characters`)
    assert.match(text, /…/)
  }
})

test('what is deep ends, however deep it is', () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  assert.equal(JSON.stringify(excerpt(deep)), '[[[[[[[["…"]]]]]]]]')
})
