import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { report, shortTable } from '../bench/compare/results.ts'
import { addRatios, combine, summarize, verdictsOf } from '../bench/compare/summary.ts'
import { quantile, spreadOf } from '../bench/figures.ts'

const root = new URL('../../', import.meta.url)
const COMPARED = /<!-- compared -->\n.*?<!-- \/compared -->\n/s

test('the README compares by what the results say', () => {
  const [readme, results] = ['README.md', 'test/bench/RESULTS.md'].map((file) =>
    COMPARED.exec(readFileSync(new URL(file, root), 'utf8'))?.[0]
  )
  assert.ok(results && results.split('\n').length > 5)
  assert.equal(readme, results)
})

test('a report has every row, and of each peer what it could not do', () => {
  const rows = {
    closing: { title: 'A connection for each', figures: ['CPU µs per request'],
      peers: { clusterdeck: { 'CPU µs per request': { median: 12_345.6, low: 12_000, high: 13_000.4 } },
        PM2: { problem: 'failed: no' }, Watt: { 'CPU µs per request': 9.876 } } }
  }
  assert.equal(shortTable(rows),
    ['<!-- compared -->',
      'Medians, with the half of the rounds in the middle in brackets. Less is better in every row.', '',
      '| | clusterdeck | node:cluster, round-robin | PM2 | Watt |', '| --- | ---: | ---: | ---: | ---: |',
      '| CPU of all its processes for a request on a connection of its own, µs | 12,346 (12,000–13,000) | – | – | 9.88 |',
      '<!-- /compared -->', ''].join('\n'))
  const text = report({ date: '2026-01-01', machine: 'a machine', versions: 'some versions', pace: 'one round', rows })
  assert.match(text, /^2026-01-01, a machine\. some versions\. one round$/m)
  assert.match(text,
    /^## closing: A connection for each\n\n\| \| CPU µs per request \|\n.*\n\| clusterdeck \| 12,346 \(12,000–13,000\) \|\n\| PM2 \| failed: no \|\n\| Watt \| 9\.88 \|$/m)
})

test('the README shows only what two runs agree on', () => {
  const measured = (...values: number[]) => values.map((ms, index) => ({ pass: index < 2 ? 0 : 1, cell: { ms } }))
  const rounds = new Map([['clusterdeck', measured(10, 10, 10, 10)], ['pm2', measured(20, 20, 30, 30)], ['watt',
    measured(5, 5, 20, 20)], ['node', measured(10, 10, 5, 5)]])
  const verdicts = verdictsOf(['ms'], [['clusterdeck', 'pm2'], ['clusterdeck', 'watt'], ['clusterdeck', 'node']],
    rounds, 2)
  assert.deepEqual(verdicts.map(({ peer, place }) => `${peer}: ${place}`), ['pm2: ahead', 'watt: unsettled',
    'node: even'])

  const named = verdicts.map((verdict) => ({ ...verdict,
    peer: { pm2: 'PM2', watt: 'Watt' }[verdict.peer] ?? verdict.peer })
  )
  const row = { title: 'A start', figures: ['ms'],
    peers: { clusterdeck: { ms: 10 }, PM2: { ms: 25 }, Watt: { ms: 12 } } }
  assert.doesNotMatch(shortTable({ start: { ...row, verdicts: named } }), /first start/)
  assert.match(shortTable({ start: { ...row, verdicts: named.slice(0, 1) } }), /first start/)
  assert.match(report({ date: '', machine: '', versions: '', pace: '', rows: { start: { ...row, verdicts: named } } }),
    /^\| start: ms \| PM2 \(× 0\.50 and 0\.33\) \| node \| – \| Watt \(× 2\.00 and 0\.50\) \|$/m)
})

test('rounds come together as their median, what failed as a sum, a text as it is', () => {
  const cells = [{ 'p99 ms': 3, failed: 1 }, { 'p99 ms': 9, failed: 0 }, { 'p99 ms': 1, failed: 2 }]
  assert.deepEqual(combine(cells), { 'p99 ms': 3, failed: 3 })
  assert.deepEqual(combine([{ 32: 5 }, { 32: '3 failed' }]), { 32: '3 failed' })
  assert.deepEqual(summarize(cells.map((cell) => ({ pass: 0, cell }))), { 'p99 ms': { median: 3, low: 1, high: 9 },
    failed: 3 })
})

test('a ratio is of the same round', () => {
  const measured = new Map(
    [['shared', [10, 20]], ['clusterdeck', [11, 30]]].map((
      [name, values]
    ) => [String(name), (values as number[]).map((µs) => ({ pass: 0, cell: { µs } as Record<string, number> }))])
  )
  addRatios(measured, { '÷ shared': { figure: 'µs', to: 'shared' } })
  assert.deepEqual(measured.get('clusterdeck')?.map(({ cell }) => cell['÷ shared']), [1.1, 1.5])
})

test('a quantile leaves out what is no number', () => {
  assert.deepEqual([0, 0.5, 1].map((share) => quantile([5, NaN, 1, 3], share)), [1, 3, 5])
  assert.equal(spreadOf([2, 1, 3]), '2.00 (1.00 to 3.00)')
})
