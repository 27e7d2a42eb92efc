/**
 * How long the history holds the loop: one million events in a file, then every kind of query.
 * `node test/bench/history.ts [events]` prints p50, p99 and max per kind, and how many calls took longer than 10 ms. It
 * fails where that is more than one in a hundred: single ones are the system's, which runs others and writes to its
 * disk meanwhile.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHistory } from '../../db/history.ts'
import { eventAt, START_MS as start } from './event-samples.ts'
import type { EventQuery } from '../../db/event-search.ts'

const LIMIT_MS = 10
const total = Number(process.argv[2] ?? 1_000_000)
const folder = mkdtempSync(join(tmpdir(), 'clusterdeck-bench-'))
const file = join(folder, 'history.db')
let history = openHistory({ file })

try {
  const slow = [...fill(), ...reopen(), ...query(), ...forget()].filter((p99) => p99 > LIMIT_MS)
  console.log(`${slow.length} kinds of call are slower than ${LIMIT_MS} ms at p99`)
  process.exitCode = slow.length === 0 ? 0 : 1
} finally {
  history.close()
  rmSync(folder, { recursive: true })
}

/** Every event in a transaction of its own, as in production. */
function fill () {
  const times = []
  for (let id = 1; id <= total; id++) times.push(timed(() => history.record(eventAt(id, total))))
  console.log(`${total} events, ${Math.round(statSync(file).size / 1e6)} MB`)
  return [report('record', times)]
}

function reopen () {
  history.close()
  return [report('open', [timed(() => {
    history = openHistory({ file, retention: { maxAgeMs: Infinity, maxEvents: total - 20_000 } })
  })])]
}

function query () {
  const third = new Date(start + total * 333).toISOString()
  const half = new Date(start + total * 500).toISOString()
  const kinds: Record<string, EventQuery> = { 'no filter': {}, 'type, common': { type: 'worker.exited' },
    'type, rare': { type: 'master.started' }, 'type family': { type: 'worker.*' },
    'type family, rare': { type: 'rollout.*' }, 'two types': { type: ['worker.exited', 'master.started'] },
    'cause, common': { cause: 'crash' }, 'cause, rare': { cause: 'hung' }, 'cause, absent': { cause: 'max-age' },
    slot: { slot: 3 }, worker: { worker: Math.floor(total / 10) }, release: { release: 'r2' }, rollout: { rollout: 3 },
    'since and until': { since: third, until: half },
    'until long ago': { until: new Date(start + 60_000).toISOString() },
    'type + slot': { type: 'worker.exited', slot: 3 },
    'type + slot + cause, rare': { type: 'worker.exited', slot: 5, cause: 'hung' },
    'common + common, never together': { type: 'worker.ready', cause: 'crash' },
    'family + cause, never together': { type: 'rollout.*', cause: 'crash' },
    'slot + release + range': { slot: 7, release: 'r1', since: third, until: half }, 'q, common': { q: 'exited' },
    'q, rare': { q: 'needle in the haystack' }, 'q, absent': { q: 'no such words' },
    'q, absent + type': { q: 'no such words', type: 'worker.exited' }, 'limit 1000': { limit: 1000 },
    'limit 1000, large details': { limit: 1000, type: 'unexpected' } }
  return Object.entries(kinds).map(([name, wanted]) => pages(name, wanted))
}

function pages (name: string, wanted: EventQuery) {
  const times = []
  let items = 0
  let cursor: string | null | undefined
  do {
    const took = timed(() => {
      const page = history.page({ ...wanted, cursor })
      items += page.items.length
      cursor = page.next
    })
    times.push(took)
  } while (cursor && times.length < 300)
  return report(name, times, `${items} items, ${cursor ? 'more' : 'all'}`)
}

function forget () {
  const times = []
  let more = true
  let deleted = 0
  while (more) {
    times.push(timed(() => {
      const result = history.sweep()
      more = result.more
      deleted += result.deleted
    }))
  }
  return [report('sweep', times, `${deleted} deleted`)]
}

function timed (work: () => void) {
  const began = performance.now()
  work()
  return performance.now() - began
}

function report (name: string, times: number[], note: string = '') {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
  const max = sorted[sorted.length - 1]
  console.log(
    `${name.padEnd(34)} calls ${String(times.length).padStart(7)}  p50 ${ms(at(0.5))}  p99 ${ms(at(0.99))}  max ${
      ms(max)
    }  over ${times.filter((time) => time > LIMIT_MS).length}  ${note}`
  )
  return at(0.99)
}

function ms (value: number) {
  return `${value.toFixed(3).padStart(8)} ms`
}
