import assert from 'node:assert/strict'
import { test } from 'node:test'
import stringWidth from 'string-width'
import { clipText } from '../../../server/cli/screen.ts'
import { createPage, drawTop, pressKey, withApps } from '../../../server/vitals/cli-top-view.ts'
import { fake } from '../../support/fake.ts'
import type { Status } from '../../../server/api/cluster.ts'
import type { App, Page } from '../../../server/vitals/cli-top-view.ts'

function app (name: string, fields?: Partial<App>): App {
  return fake<App>({ key: `host ${name}`, name, isSilent: false, dataDir: `/srv/${name}/.clusterdeck`, state: 'running',
    reason: null, health: { tone: 'ok', text: 'All 2 workers are ready', hint: '' }, workers: { ready: 2, desired: 2 },
    cpu: 1, memoryBytes: 64 * 1024 * 1024, requestsPerSecond: 12, p99Ms: 8, restarts: 0, ...fields })
}

const SICK = app('sick', { health: { tone: 'bad', text: 'No worker serves', hint: 'See the crashes.' }, cpu: 90,
  requestsPerSecond: null })
const BROKEN = app('broken', { state: 'failed', reason: 'workers: expected an integer', health: null, workers: null,
  cpu: null, memoryBytes: null, requestsPerSecond: null, p99Ms: null, restarts: null })
const STOPPED = app('old', { state: 'stopped', health: null, workers: null, cpu: null, memoryBytes: null })
const APPS = [app('shop', { cpu: 5 }), app('mail', { memoryBytes: 900 * 1024 * 1024 }), SICK, BROKEN, STOPPED]

function page (...keys: string[]): Page {
  return keys.reduce(pressKey, createPage(APPS, null))
}

function draw (shown: Page, { columns = 100, rows = 24 }: { columns?: number, rows?: number } = {}) {
  return drawTop(shown, { columns, rows }, Date.parse('2026-01-01T01:00:00Z')).map(({ text }) =>
    clipText(text, columns)
  )
}

function namesOf (shown: Page) {
  return draw(shown).flatMap((line) => /^[> ] (\w+) .* (?:ready|serves|stopped|integer)$/.exec(line)?.[1] ?? [])
}

test('the sick come first, then by name; o sorts by the other columns', () => {
  assert.deepEqual(namesOf(page()), ['broken', 'sick', 'mail', 'shop', 'old'])
  assert.deepEqual(namesOf(page('o')), ['broken', 'mail', 'old', 'shop', 'sick'])
  assert.deepEqual(namesOf(page('o', 'o')).slice(0, 2), ['sick', 'shop'])
  assert.deepEqual(namesOf(page('o', 'o', 'o'))[0], 'mail')
  assert.deepEqual(namesOf(page('o', 'o', 'o', 'o', 'o')), namesOf(page()))
  assert.match(String(draw(page('o')).at(-1)), /o order \(name\)$/)
})

test('the first app is chosen, or the one of the folder; keys choose others, and the choice stays while the order changes', () => {
  assert.equal(page().chosen, 'host broken')
  assert.equal(createPage(APPS, '/srv/shop/.clusterdeck').chosen, 'host shop')
  assert.deepEqual([page('down').chosen, page('j', 'j').chosen, page('up').chosen, page('j', 'k').chosen,
    page('down', 'o').chosen, page('x').chosen], ['host sick', 'host mail', 'host broken', 'host broken', 'host sick',
    'host broken'])
  assert.equal(withApps(page('down'), APPS.filter((each) => each !== SICK)).chosen, 'host broken')
  assert.equal(withApps(page(), []).chosen, null)
  assert.match(draw(withApps(page(), [])).join('\n'), /no app of this user runs/)
})

const WORKER = { slot: 1, id: 7, pid: 4001, state: 'ready' as const, restarts: 3, release: 'r1',
  startedAt: '2026-01-01T00:00:00Z', vitals: null }
const statusOf = (fields: object) =>
  fake<Status>({ workers: [WORKER], health: { text: 'No worker serves', reasons: [{ text: 'boom' }] }, rollout: null,
    ...fields })
const linesOf = (count: number) =>
  Array.from({ length: count },
    (_, index) => ({ slot: 1, stream: index % 2 ? 'stderr' : 'stdout', text: `line ${index}` }))

test('below are the workers and the last output of the chosen app, and of no other', () => {
  const detail = { key: 'host sick', status: statusOf({}), lines: linesOf(50) }
  const text = draw({ ...page('down'), detail })
  assert.ok(text.includes('sick  No worker serves: boom  See the crashes.'))
  assert.match(text.join('\n'), /^ {3}1 {7}7 {2}4001 .* 3 {2}1 h .*r1 +ready$/m)
  assert.equal(text.at(-2), '1 stderr | line 49')
  assert.doesNotMatch(draw({ ...page(), detail }).join('\n'), /line|4001/)
})

test('an app that nobody tells of says so, and keeps its figures', () => {
  const silent = withApps(page(), APPS.map((each) => ({ ...each, isSilent: true })))
  const text = draw({ ...silent, problem: 'no master answers at http://127.0.0.1:9777' })
  assert.match(text.join('\n'), /^ {2}shop .* 5\.0% .* no answer$/m)
  assert.equal(text.at(-1), 'no master answers at http://127.0.0.1:9777')
})

test('it fits each terminal, without the columns that matter less, and shows no control character of anybody', () => {
  const hostile = 'x\u001b[2J\u0007\n\u009b31m\u202e'.repeat(9)
  const apps = [app(`long-${'name'.repeat(20)}`, { health: { tone: 'warn', text: hostile, hint: hostile } }), ...APPS,
    app('why', { state: 'failed', reason: hostile })]
  const status = statusOf({ workers: Array(9).fill({ ...WORKER, state: hostile, release: hostile }),
    health: { text: hostile, reasons: [{ text: hostile }] } })
  const lines = [{ slot: 1, stream: 'stderr', text: hostile }, { slot: 2, stream: 'stdout', text: '漢字'.repeat(99) }]
  const shown = createPage(apps, '/srv/mail/.clusterdeck')
  for (const each of [{ ...shown, detail: { key: String(shown.chosen), status, lines } }, { ...shown,
    problem: hostile }])
  {
    for (const columns of [20, 40, 80, 140]) {
      for (const rows of [4, 10, 24, 60]) {
        const text = draw(each, { columns, rows })
        assert.equal(text.length, rows)
        for (const line of text) {
          assert.ok(stringWidth(line) <= columns, `${columns}: ${line}`)
          assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u202e]/)
        }
      }
    }
  }
  const narrow = draw(page(), { columns: 48 }).join('\n')
  assert.match(narrow, /^ {2}APP .*READY.*CPU.* HEALTH$/m)
  assert.match(narrow, /^ {2}mail .* All 2 workers/m)
})

test('the chosen app stays in sight among many', () => {
  let shown = createPage(Array.from({ length: 60 }, (_, index) => app(`app-${String(index).padStart(2, '0')}`)), null)
  for (let index = 0; index < 60; index++) {
    assert.match(draw(shown).join('\n'), new RegExp(`^> app-${String(index).padStart(2, '0')} `, 'm'))
    shown = pressKey(shown, 'down')
  }
})
