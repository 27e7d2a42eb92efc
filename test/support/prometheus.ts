import assert from 'node:assert/strict'

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"'
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (NaN|[+-]Inf|-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)$`
)

/**
 * Reads the text format of Prometheus, version 0.0.4, and refuses what its own parser and `promtool check metrics`
 * refuse.
 * @returns by name and labels
 */
export function parsePrometheus (text: string): Map<string, number> {
  const samples = new Map()
  const types: Map<string, string> = new Map()
  /** whose samples are told now */
  let current: string | null = null
  assert.match(text, /\n$/, 'the last line ends')
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue
    const [, typed, type] = /^# TYPE ([a-zA-Z0-9_:]+) (gauge|counter|histogram|summary)$/.exec(line) ?? []
    if (typed) {
      assert.ok(!types.has(typed), `${typed} is told once`)
      types.set(typed, type)
      current = typed
      continue
    }
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`)
    const base = name.replace(/_(bucket|sum|count)$/, '')
    const family = types.has(name) ? name : base
    assert.equal(family, current, `${name} is below its type`)
    const kind = types.get(family)
    if (family !== name)
      assert.ok(kind === 'histogram' || (kind === 'summary' && !name.endsWith('_bucket')),
        `${name} is of a histogram or a summary`)
    if (kind === 'counter' && name.startsWith('clusterdeck_')) assert.match(name, /_total$/)
    assert.ok(!samples.has(`${name}{${labels}}`), `${line} is told once`)
    samples.set(`${name}{${labels}}`, Number(value.replace('Inf', 'Infinity')))
  }
  for (const [name, type] of types) if (type === 'histogram') checkBuckets(name, samples)
  return samples
}

function checkBuckets (name: string, samples: Map<string, number>) {
  const bySeries: Map<string, [le: string, count: number][]> = new Map()
  for (const [key, count] of samples) {
    const [, before, le] = new RegExp(`^${name}_bucket\\{(.*?),?le="([^"]*)"\\}$`).exec(key) ?? []
    if (le !== undefined) bySeries.set(before, [...bySeries.get(before) ?? [], [le, count]])
  }
  for (const [labels, buckets] of bySeries) {
    const bounds = buckets.map(([le]) => Number(le.replace('Inf', 'Infinity')))
    const counts = buckets.map(([, count]) => count)
    assert.deepEqual(bounds, bounds.toSorted((a, b) => a - b), `${name}{${labels}}: bounds ascend`)
    assert.deepEqual(counts, counts.toSorted((a, b) => a - b), `${name}{${labels}}: counts are cumulative`)
    assert.equal(buckets.at(-1)?.[0], '+Inf')
    assert.equal(counts.at(-1), samples.get(`${name}_count{${labels}}`))
  }
}
