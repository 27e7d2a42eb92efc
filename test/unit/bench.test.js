import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { report, shortTable } from '../bench/compare/results.js'
import { combine } from '../bench/compare/rows.js'
import { quantile, spreadOf } from '../bench/figures.js'

const root = new URL('../../', import.meta.url)
const COMPARED = /<!-- compared -->\n.*?<!-- \/compared -->\n/s

test('the README compares by what the results say', () => {
  const [readme, results] = ['README.md', 'test/bench/RESULTS.md'].map((file) => COMPARED.exec(readFileSync(new URL(file, root), 'utf8'))?.[0])
  assert.ok(results && results.split('\n').length > 5)
  assert.equal(readme, results)
})

test('a report has every row, and of each peer what it could not do', () => {
  const rows = {
    closing: { title: 'A connection per request', figures: ['requests/s'], peers: { clusterdeck: { 'requests/s': 12_345.6 }, PM2: { problem: 'failed: no' }, Watt: { 'requests/s': 9.876 } } }
  }
  assert.equal(shortTable(rows), [
    '<!-- compared -->',
    '| | clusterdeck | node:cluster, round-robin | PM2 | Watt |',
    '| --- | ---: | ---: | ---: | ---: |',
    '| a connection per request, requests/s | 12,346 | – | – | 9.88 |',
    '<!-- /compared -->',
    ''
  ].join('\n'))
  const text = report({ date: '2026-01-01', machine: 'a machine', versions: 'some versions', pace: 'one round', rows })
  assert.match(text, /^2026-01-01, a machine\. some versions\. one round$/m)
  assert.match(text, /^## A connection per request\n\n\| \| requests\/s \|\n.*\n\| clusterdeck \| 12,346 \|\n\| PM2 \| failed: no \|\n\| Watt \| 9\.88 \|$/m)
})

test('rounds come together as their median, what failed as a sum, a text as it is', () => {
  const cells = [{ 'p99 ms': 3, failed: 1 }, { 'p99 ms': 9, failed: 0 }, { 'p99 ms': 1, failed: 2 }]
  assert.deepEqual(combine(cells), { 'p99 ms': 3, failed: 3 })
  assert.deepEqual(combine([{ 32: 5 }, { 32: '3 failed' }]), { 32: '3 failed' })
})

test('a quantile leaves out what is no number', () => {
  assert.deepEqual([0, 0.5, 1].map((share) => quantile([5, NaN, 1, 3], share)), [1, 3, 5])
  assert.equal(spreadOf([2, 1, 3]), '2.00 (1.00 to 3.00)')
})
