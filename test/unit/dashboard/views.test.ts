import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from '../../support/fast-check.ts'
import { PROBLEMS } from '../../../server/events/kinds.ts'
import { sentenceOf } from '../../../server/events/sentences.ts'
import { describeHealth } from '../../../server/health.ts'
import { eventModel } from '../../../server/dashboard/event-page.ts'
import { parseFilters, urlOf } from '../../../server/dashboard/history-filters.ts'
import { historyModel } from '../../../server/dashboard/history-page.ts'
import { overviewModel } from '../../../server/dashboard/overview.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { toWorkerRow } from '../../../server/dashboard/worker-row.ts'
import { formatAgo, formatBytes, formatDuration, formatExactDuration, formatLatency, formatPercent,
  formatTime } from '../../../public/format.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { OpenCrashes } from '../../../server/crash-reasons.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'
import type { Deck, Status, WorkerRow } from '../../../server/deck.ts'
import type { DeckEvent, NewEvent } from '../../../server/events/stream.ts'
import type { Figures, RolloutStep } from '../../../server/api/shapes.ts'
import type { History } from '../../../db/history.ts'
import type { RolloutView } from '../../../server/lifecycle/rollout/record.ts'

const OPERATOR: Powers = { operate: true, administer: false, switchDecks: false, name: null, token: null,
  role: 'operator' }
const NO_PARAMS = new URLSearchParams()
const NOW = Date.parse('2026-01-02T03:04:05.678Z')
const views = createViews()

const anEvent = (
  fields?: Partial<NewEvent> & { id?: number, at?: string }
) => ({ id: 1, at: '2026-01-02T03:04:00.000Z', type: 'worker.exited', cause: null, slot: 1, worker: 7, pid: null,
  release: null, rollout: null, actor: null, code: null, signal: null, uptimeMs: null, message: null, detail: null,
  ...fields } as DeckEvent)

const aWorker = (fields?: Parts<WorkerRow>) =>
  fake<WorkerRow>({ id: 1, slot: 1, pid: 4001, state: 'ready', release: 'r1', startedAt: '2026-01-01T00:00:00.000Z',
    readyAt: '2026-01-01T00:00:00.300Z', restarts: 0, crashLooping: false, retryAt: null, vitals: null, ...fields })

const aSnapshot = (fields?: Parts<Status>) =>
  fake<Status>({ state: 'running',
    master: { pid: 1, version: '0.1.0', nodeVersion: 'v20', startedAt: '2026-01-01T00:00:00.000Z', rssBytes: 1,
      isShared: false }, app: { entry: '/app.js', cwd: '/', addresses: [] }, dispatch: 'shared', stickyBy: null,
    isEven: true, limits: { memoryBytes: 0, cpus: 0, problem: null }, desiredWorkers: 2, readyWorkers: 2,
    release: { id: 'r1', createdAt: '2026-01-01T00:00:00.000Z' }, rollout: null,
    workers: [aWorker(), aWorker({ id: 2, slot: 2 })], standby: { wanted: 0, ready: 0, problem: null, workers: [] },
    ...fields })

const aRollout = (fields?: Parts<RolloutView>) =>
  fake<RolloutView>({ id: 3, kind: 'deploy', state: 'rolling', from: 'r1', to: 'r2', actor: 'cli', note: null,
    startedAt: '2026-01-02T03:04:00.000Z', finishedAt: null, done: false, reason: null,
    progress: { total: 2, replaced: 1 }, steps: [], ...fields })

const aDeck = (snapshot: () => Status, more?: Parts<Deck>) =>
  fake<Deck>({ snapshot, health: describeHealth, notices: { list: () => [] }, jobs: { building: () => null },
    releases: { get: () => {
      throw new Error('nobody asked for a release')
    } }, ...more })

const aHistory = (items: DeckEvent[] = [], rollouts: RolloutView[] = []) =>
  fake<History>({ page: () => ({ items, next: null }), rollouts: () => ({ items: rollouts, next: null }), event: (id) =>
    items.find((item) => item.id === id) ?? null })

test('durations have at most two units and never a negative one', () => {
  assert.deepEqual([0, 999, 12_000, 192_000, 7_500_000, 273_600_000, -5].map(formatDuration), ['0 s', '0 s', '12 s',
    '3 min 12 s', '2 h 05 min', '3 d 04 h', '0 s'])
  assert.deepEqual([formatDuration(null), formatDuration(NaN)], ['–', '–'])
  assert.deepEqual([0, 340, 9949, 10_000, 185_000, 300_000, -1].map(formatExactDuration), ['0 ms', '340 ms', '9.9 s',
    '10 s', '3 min 05 s', '5 min', '0 s'])
  assert.deepEqual([-1, 0, 5000, 200_000].map(formatAgo), ['now', 'now', '5 s ago', '3 min ago'])
})

test('sizes, shares and times read alike everywhere', () => {
  assert.deepEqual([2048, 64 * 2 ** 20, 200 * 2 ** 20, 1.5 * 2 ** 30, null].map(formatBytes), ['2 KB', '64.0 MB',
    '200 MB', '1.50 GB', '–'])
  assert.deepEqual([0, 12.53, 100, 153.4, undefined].map(formatPercent), ['0.0%', '12.5%', '100%', '153%', '–'])
  assert.deepEqual([0.449, 12.53, 128.45, 2500, null].map(formatLatency), ['0.45 ms', '12.5 ms', '128 ms', '2.5 s',
    '–'])
  assert.equal(formatTime('2026-01-02T03:04:05.678Z', { timeZone: 'UTC' }), '02 Jan 03:04:05')
  assert.equal(formatTime('2026-01-02T03:04:05.678Z', { timeZone: 'UTC', isLong: true }),
    'Fri 02 Jan 2026, 03:04:05.678')
  assert.equal(formatTime('no time'), 'no time')
})

test('the health sentence says the most urgent thing', () => {
  const say = (fields: Parts<Status>) => {
    const { tone, text } = describeHealth(aSnapshot(fields))
    return `${tone}: ${text}`
  }
  const [ready, other] = [aWorker(), aWorker({ id: 2, slot: 2 })]
  const backoff = aWorker({ id: null, pid: null, slot: 2, state: 'backoff', restarts: 1 })

  assert.equal(say({}), 'ok: All 2 workers are ready')
  assert.equal(say({ desiredWorkers: 1, readyWorkers: 1, workers: [ready] }), 'ok: The worker is ready')
  assert.equal(say({ readyWorkers: 1, workers: [ready, backoff] }), 'warn: 1 of 2 workers is restarting')
  assert.equal(say({ readyWorkers: 1, workers: [ready, aWorker({ id: 9, slot: 2, state: 'starting', restarts: 1 })] }),
    'warn: 1 of 2 workers is restarting')
  assert.equal(say({ readyWorkers: 1, workers: [ready, aWorker({ id: 9, slot: 2, state: 'starting' })] }),
    'info: 1 of 2 workers ready')
  assert.equal(say({ readyWorkers: 1, workers: [ready, { ...backoff, crashLooping: true }] }),
    'bad: 1 of 2 workers serves; slot 2 keeps crashing')
  assert.equal(
    say({ readyWorkers: 0, workers: [{ ...ready, crashLooping: true }, { ...backoff, crashLooping: true }] }),
    'bad: No worker serves; all 2 slots keep crashing'
  )
  assert.equal(say({ readyWorkers: 0, workers: [{ ...backoff, slot: 1 }, backoff] }),
    'bad: No worker serves; all 2 slots restart')
  assert.equal(say({ workers: [ready, { ...other, crashLooping: true }] }),
    'warn: All 2 workers serve; slot 2 keeps crashing', 'it is up at this moment')
  assert.equal(say({ readyWorkers: 1, workers: [ready, { ...other, state: 'unresponsive' }] }),
    'bad: 1 of 2 workers serves; slot 2 is unresponsive')
  assert.equal(
    say({ readyWorkers: 1, workers: [ready, { ...backoff, state: 'held', drifted: true, crashLooping: true }] }),
    'bad: 1 of 2 workers serves; slot 2 is held'
  )
  assert.equal(say({ readyWorkers: 0, workers: [1, 2].map((slot) => ({ ...backoff, slot, state: 'held' })) }),
    'bad: No worker serves; all 2 slots are held')
  assert.equal(say({ workers: [ready, { ...other, drifted: true }] }), 'warn: 1 of 2 workers runs changed files')
  assert.equal(say({ rollout: aRollout() }), 'info: Deploying r2')
  assert.equal(say({ rollout: aRollout({ state: 'rolling-back' }) }), 'info: Rolling back to r1')
  assert.equal(say({ rollout: aRollout({ state: 'paused' }) }), 'warn: Deploy of r2 paused')
  assert.equal(say({ rollout: aRollout({ state: 'held', reason: 'worker 3 crashed' }) }), 'bad: Deploy of r2 is held')
  assert.equal(say({ history: { problem: 'the disk is full' } }), 'warn: The history cannot be written')
  // The host tells it, once for all of its apps.
  const full = { problem: 'full (SQLITE_FULL)', since: '2026-01-01T00:00:00.000Z' }
  assert.equal(say({ master: { isShared: true }, history: full }), 'ok: All 2 workers are ready')
  assert.equal(say({ master: { isShared: false }, history: full }), 'warn: The history cannot be written')
  assert.equal(say({ readyWorkers: 0, history: { problem: 'the disk is full' } }), 'bad: No worker serves',
    'the app comes first')
  assert.equal(describeHealth(aSnapshot(), { notices: [{ kind: 'master-lost' }] }).tone, 'warn',
    'not as calm as if nothing had happened')
  assert.equal(say({ rollout: aRollout({ kind: 'restart', steps: [{}, {}] }) }), 'info: Restarting all workers')
  assert.equal(say({ state: 'starting', readyWorkers: 0, workers: [] }), 'info: Starting 2 workers')
  assert.equal(say({ state: 'starting', desiredWorkers: 0, readyWorkers: 0, workers: [] }), 'info: Starting')
  assert.equal(say({ state: 'stopping', rollout: aRollout(), readyWorkers: 0 }), 'drain: The master is stopping')
})

test('open crashes of the release that runs make it no longer well, those of others do not', () => {
  const say = (crashes: Partial<OpenCrashes> | null, fields: Parts<Status> = {}) => {
    const { tone, text, hint, problems } = describeHealth(aSnapshot(fields), {
      crashes: crashes && fake<OpenCrashes>({ isMore: false, reasons: [], ...crashes })
    })
    return `${tone}: ${text}. ${hint} ${problems}`
  }
  assert.equal(say(null), 'ok: All 2 workers are ready. The history cannot be read. 0')
  assert.equal(say({ open: 0, inRelease: 0, newInRelease: 0 }), 'ok: All 2 workers are ready. No open crashes. 0')
  assert.equal(say({ open: 2, inRelease: 0, newInRelease: 0 }),
    'ok: All 2 workers are ready. 2 open crashes, none of them in this release. 0')
  assert.equal(say({ open: 3, inRelease: 2, newInRelease: 1 }),
    'warn: All 2 workers are ready; 1 new crash in r1. 3 open crashes in all. 2')
  assert.equal(say({ open: 2, inRelease: 2, newInRelease: 2 }),
    'warn: All 2 workers are ready; 2 new crashes in r1. Resolved and muted crashes no longer count. 2')
  assert.equal(say({ open: 1, inRelease: 1, newInRelease: 0 }),
    'warn: All 2 workers are ready; 1 open crash in r1. Resolved and muted crashes no longer count. 1')
  assert.equal(say({ open: 200, inRelease: 100, isMore: true, newInRelease: 0 }),
    'warn: All 2 workers are ready; at least 100 open crashes in r1. 200 open crashes in all. 100')
  assert.match(say({ open: 1, inRelease: 1, newInRelease: 1 }, { rollout: aRollout() }), /^info: Deploying r2\. .* 1$/,
    'the rollout is what counts now')
  assert.match(say({ open: 1, inRelease: 1, newInRelease: 1 }, { readyWorkers: 0 }), /^bad: No worker serves\. /)
})

test('a row says that its worker runs changed files, or that its slot waits for a person', () => {
  const [drifted, held, plain] = [{ drifted: true }, { id: null, pid: null, slot: 2, state: 'held', drifted: true,
    retryAt: '2026-01-02T03:04:07.678Z' }, { slot: 3 }].map((fields) => {
      const snapshot = aSnapshot({ workers: [aWorker(fields)] })
      return views.render('partials/workers',
        overviewModel({ params: NO_PARAMS, deck: aDeck(() => snapshot), history: aHistory(), now: () => NOW }))
    })
  assert.match(drifted, /Ready.*\+ changes/s)
  assert.match(held, /tone-bad.*Held.*2 s.*\+ changes/s)
  assert.doesNotMatch(plain, /\+ changes|Held/)
})

test('what a worker has reported some seconds ago says nothing of now', () => {
  const vitals = { rssBytes: 2 ** 26, cpuPercent: 91.5, requestsPerSecond: 15 }
  const shown = [1000, 6000].map((ageMs) => {
    const snapshot = aSnapshot({
      workers: [aWorker({ vitals: { ...vitals, at: new Date(NOW - ageMs).toISOString() } })]
    })
    const model = overviewModel({ params: NO_PARAMS, deck: aDeck(() => snapshot), history: aHistory(), now: () => NOW })
    return [model.totals.cpuPercent, /91\.5%/.test(views.render('partials/workers', model))]
  })
  assert.deepEqual(shown, [[91.5, true], [null, false]])
})

test('what stands by is said below the slots, where any is wanted', () => {
  const say = (standby: Parts<Status['standby']>) => {
    const html = views.render('partials/workers',
      overviewModel({ params: NO_PARAMS, deck: aDeck(() => aSnapshot({ standby })), history: aHistory(),
        now: () => NOW }))
    return /Standby:[^]*?<\/p>/.exec(html)?.[0].replace(/<[^>]+>/g, '').trim()
  }
  const workers: Status['standby']['workers'] = [{ id: 9, pid: 99, state: 'standby', release: 'r1',
    startedAt: '2026-01-02T03:04:00.000Z', rssBytes: 50 * 1024 * 1024 }, { id: 10, pid: 100, state: 'starting',
    release: 'r1', startedAt: '2026-01-02T03:04:00.000Z', rssBytes: null }]
  assert.equal(say({ wanted: 2, ready: 1, problem: null, workers }),
    'Standby: 1 of 2 ready, #9 standby (pid 99, r1, 50.0 MB), #10 starting (pid 100, r1, –)')
  assert.equal(say({ wanted: 1, ready: 0, problem: 'it does not listen', workers: [] }),
    'Standby: 0 of 1 ready: it does not listen')
  assert.equal(say({ wanted: 0, ready: 0, problem: null, workers: [] }), undefined)
})

test('a message can be sent to a worker that hears it', () => {
  const rows = [{}, { state: 'draining' }, { state: 'starting' }, { state: 'unresponsive' }, { state: 'stopping' }, {
    orphan: true
  }, { id: null, pid: null, state: 'backoff' }]
  assert.deepEqual(rows.map((fields) => toWorkerRow(aWorker(fields)).canHear), [true, true, false, false, false, false,
    false])
})

test('a held deploy is a red card: what is new beside what is old, a clock that stands still, and Abort before all else', () => {
  const figures = (fields: Partial<Figures>) => ({ workers: 1, requests: 1200, errorRate: 0.002, p99Ms: 12, ...fields })
  const rollout = aRollout({ state: 'held', pausedIn: 'canary', reason: '30.0% of the responses are 5xx', crashes: 2,
    pausedAt: '2026-01-02T03:04:04.500Z', strategy: { limits: { crashes: 0, errorRate: 0.05, p99Ratio: 3 } },
    comparison: { at: '2026-01-02T03:04:04.000Z', canary: figures({ errorRate: 0.3, p99Ms: 50 }),
      baseline: figures({ requests: 3400 }) },
    steps: [{ slot: 1, state: 'ready', oldWorker: 1, newWorker: 3, startedAt: '2026-01-02T03:04:01.000Z',
      finishedAt: null }] })
  const history = aHistory()
  history.page = ({ cause, release } = {}) => ({ items: cause === 'crash' && release === 'r1' ? [anEvent()] : [],
    next: null })
  const render = (now: number) =>
    views.render('partials/rollout', {
      ...overviewModel({ params: NO_PARAMS, deck: aDeck(() => aSnapshot({ rollout })), history, now: () => now }),
      can: OPERATOR
    })
  const html = render(NOW)
  const text = html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
  assert.match(html, /class="panel rollout is-running is-waiting tone-bad"/)
  assert.match(text,
    /canary \(r2\) baseline \(r1\) Requests 1,200 3,400 5xx 30\.0% above its limit 0\.2% p99 50 ms above its limit 12 ms Crashes 2 above its limit 1 /)
  assert.match(text, /held after 4\.5 s/)
  assert.equal(render(NOW + 600_000), html, 'nothing of it ticks')
  assert.deepEqual(Array.from(html.matchAll(/id="rollout-(abort|retry|promote|resume|pause)"/g), ([, name]) => name), [
    'abort',
    'retry',
    'promote'
  ])
  for (const name of ['abort', 'promote'])
    assert.match(html, new RegExp(`id="rollout-${name}" data-dialog="dialog-${name}" data-fill-id="3"`))
})

test('slots that a failed rollout never came to are untouched, and wait for nothing', () => {
  const step = { slot: 1, state: 'pending' as const, oldWorker: null, newWorker: null, startedAt: null,
    finishedAt: null }
  const words = (['failed', 'rolled-back', 'rolling'] as const).map((state) => {
    const snapshot = aSnapshot({ rollout: aRollout({ state, finishedAt: '2026-01-02T03:04:02.000Z', steps: [step] }) })
    return /(Pending|Untouched)/.exec(
      views.render('partials/rollout', overviewModel({ params: NO_PARAMS, deck: aDeck(() =>
        snapshot
      ), history: aHistory(), now: () => NOW }))
    )?.[1]
  })
  assert.deepEqual(words, ['Untouched', 'Untouched', 'Pending'])
})

test('what an app says is quoted, and what was left out of it is not', () => {
  const type = 'worker.message'
  assert.equal(sentenceOf(anEvent({ type, message: 'cache cleared', detail: { type: 'cache cleared', data: null } })),
    'Worker 7 (slot 1) says "cache cleared"')
  assert.equal(sentenceOf(anEvent({ type, message: '4,990 more messages were left out', detail: { leftOut: 4990 } })),
    'Worker 7 (slot 1): 4,990 more messages were left out')
})

test('every event has a sentence, also one of a type that is not known here', () => {
  const say = (fields: Parameters<typeof anEvent>[0]) => sentenceOf(anEvent(fields))
  assert.equal(say({ signal: 'SIGKILL', uptimeMs: 4200 }), 'Worker 7 (slot 1) was ended by SIGKILL after 4.2 s')
  assert.equal(say({ code: 1, message: 'boom' }), 'Boom')
  assert.equal(say({ type: 'rollout.failed', message: 'too slow', detail: aRollout() }),
    'Deploy of r2 failed: too slow')
  assert.equal(say({ type: 'rollout.started', detail: null, rollout: 3 }), 'Rollout 3 started')
  assert.equal(say({ type: 'worker.restarted', detail: { delayMs: 130 } }), 'Slot 1 gets a new worker in 130 ms')
  assert.equal(say({ type: 'future.thing' }), 'Future.thing')
  assert.equal(say({ type: 'constructor' }), 'Constructor')
})

test('filters that are equal have equal addresses, and the empty ones are not in them', () => {
  const read = (text: string) => parseFilters(new URLSearchParams(text), NOW)
  const { filters } = read('worker=&slot=2&junk=1&q=+boom+&type=worker.*')
  assert.deepEqual(filters, { q: 'boom', type: 'worker.*', slot: '2' })
  assert.equal(urlOf('/history', filters), '/history?q=boom&type=worker.*&slot=2')
  assert.equal(urlOf('/history', filters, { q: undefined, type: undefined, slot: undefined }), '/history')
  assert.deepEqual(read('type=worker.exited&slot=2&range=1h').query, { type: ['worker.exited'], slot: 2,
    since: NOW - 3_600_000 })
  assert.deepEqual(read('since=2026-01-01&range=1h').query, { since: Date.parse('2026-01-01T00:00:00Z') })
  assert.deepEqual(read('type=problems').query, { type: [...PROBLEMS] })
  for (const bad of ['slot=0', 'type=worker.*:crash', 'slot=1.5', 'worker=x', 'range=1y', 'since=tomorrow', 'type=a b',
    `q=${'x'.repeat(101)}`])
  {
    assert.throws(() => read(bad), { code: 'invalid-query',
      message: new RegExp(`^${bad.split('=')[0]}: expected .+, received `) })
  }
})

test('days and nights are those of the zone in the address, when the clocks change, too', () => {
  const range = (text: string, now: string) => {
    const { since, until } = parseFilters(new URLSearchParams(text), Date.parse(now)).query
    return [since, until].map((ms) => ms === undefined ? null : new Date(ms).toISOString().slice(0, 16))
  }
  assert.deepEqual(range('range=today', '2026-01-02T03:04:05Z'), ['2026-01-02T00:00', null])
  assert.deepEqual(range('range=today&zone=Pacific/Auckland', '2026-01-02T03:04:05Z'), ['2026-01-01T11:00', null])
  assert.deepEqual(range('range=night&zone=Europe/Berlin', '2026-01-02T12:00:00Z'), ['2026-01-01T21:00',
    '2026-01-02T07:00'])
  // The clocks went forward at 01:00 UTC.
  assert.deepEqual(range('range=night&zone=Europe/Berlin', '2026-03-29T12:00:00Z'), ['2026-03-28T21:00',
    '2026-03-29T06:00'])
  assert.deepEqual(range('range=yesterday&zone=America/New_York', '2026-01-02T03:00:00Z'), ['2025-12-31T05:00',
    '2026-01-01T05:00'])
  for (const zone of ['Nowhere/Land', '<b>', 'x'.repeat(99)])
    assert.throws(() => range(`zone=${zone}`, '2026-01-02T12:00:00Z'), { code: 'invalid-query',
      message: /^zone: expected a time zone such as Europe\/Berlin, received / })
  const marks = { deployed: () => 1000, started: () => 2000 }
  assert.deepEqual(
    ['deploy', 'master'].map((name) => parseFilters(new URLSearchParams({ range: name }), NOW, marks).query.since),
    [1000, 2000]
  )
})

test('a page of the history survives any query, and says what it cannot read', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('q', 'type', 'slot', 'range', 'since', 'cursor', 'trail'), fc.string()),
      (query) => {
        const model = historyModel({ history: aHistory([anEvent()]), params: new URLSearchParams(query), now: NOW })
        const html = views.render('pages/history', model)
        assert.match(html, /<\/html>/)
        assert.equal(html.includes('id="event-1"'), model.problem === null)
      })
  )
})

test('no text from outside becomes markup', () => {
  const hostile = '<x-evil onload="1">\'"&</title></textarea>'
  fc.assert(
    fc.property(fc.constantFrom('worker.exited', 'rollout.failed', hostile),
      fc.constantFrom(...['cause', 'release', 'actor', 'signal', 'message', 'type']), (type, field) => {
      const event = anEvent({ type, [field]: hostile,
        detail: { errorName: hostile, stack: hostile, [hostile]: hostile, ...aRollout({ to: hostile }) } })
      const rollout = aRollout({ note: hostile, reason: hostile, actor: hostile, to: hostile, state: 'failed',
        kind: 'deploy', finishedAt: '2026-01-02T03:04:01.000Z',
        steps: [{ slot: 1, state: hostile, oldWorker: hostile, newWorker: hostile }] as object as RolloutStep[] })
      const history = aHistory([event], [rollout])
      const snapshot = aSnapshot(
        { app: { entry: hostile, cwd: hostile, addresses: [hostile, `http://${hostile}`] }, dispatch: hostile,
          release: { id: hostile, createdAt: hostile },
          workers: [aWorker({ state: hostile, release: hostile, startedAt: hostile, retryAt: hostile })],
          standby: { wanted: 1, ready: hostile, problem: hostile,
            workers: [{ id: hostile, pid: hostile, state: hostile, release: hostile, startedAt: hostile,
              rssBytes: null }] } } as object
      )
      const pages = [views.render('pages/overview', { ...overviewModel({ params: NO_PARAMS, deck: aDeck(() =>
        snapshot
      ), history, now: () =>
        NOW }), can: OPERATOR }),
        views.render('pages/overview',
          overviewModel({ params: NO_PARAMS,
            deck: aDeck(() => ({ ...snapshot, rollout: { ...rollout, state: 'rolling' } })), history, now: () =>
              NOW })),
        views.render('pages/history', historyModel({ history, params: new URLSearchParams({ q: hostile }), now: NOW })),
        views.render('pages/history',
          historyModel({ history, params: new URLSearchParams({ slot: hostile }), now: NOW })),
        views.render('pages/event', eventModel({ history, id: '1', now: NOW })),
        views.render('pages/error', { status: 404, title: hostile, message: hostile }),
        views.render('pages/sign-in', { notice: { kind: 'error', text: hostile }, next: hostile })]
      for (const html of pages)
        assert.doesNotMatch(html, /<x-evil|" onload="|<\/title><\/textarea>/)
    })
  )
})

test('a sentence, a note or a name from outside turns no text beside it around', () => {
  const partials = fileURLToPath(new URL('../../../views/partials', import.meta.url))
  for (const name of readdirSync(partials)) {
    const bare = readFileSync(`${partials}/${name}`, 'utf8').replaceAll(/<bdi[^>]*>“?<%=[^%]*%>|="[^"]*"/g, '')
    assert.doesNotMatch(bare, /<%= (?:[\w.?]+\.(?:sentence|note)|notice\.message|changed\.name)\b/, name)
  }
})

test('the strict CSP has nothing to refuse: no inline script, no inline style, no evaluated attribute', () => {
  const folder = fileURLToPath(new URL('../../../views', import.meta.url))
  for (const name of readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith('.eta'))) {
    const template = readFileSync(`${folder}/${name}`, 'utf8')
    assert.doesNotMatch(template, /\sstyle=|<style|\son[a-z]+=|hx-on|js:|<script>/, name)
  }
})

test('a broken history leaves the overview standing', () => {
  const broken = fake<History>({ page () {
    throw new Error('disk I/O error')
  }, rollouts () {
    throw new Error('disk I/O error')
  } })
  const html = views.render('pages/overview',
    overviewModel({ params: NO_PARAMS, deck: aDeck(aSnapshot), history: broken, now: () => NOW }))
  assert.match(html, /All 2 workers are ready/)
  assert.match(html, /The history database cannot be read/)
})

test('two renderings differ in nothing but time that goes on', () => {
  const at = (now: number) =>
    views.fragment('workers', overviewModel({ params: NO_PARAMS, deck: aDeck(aSnapshot), history: aHistory(), now: () =>
      now }))
  assert.notDeepEqual(at(NOW).parts, at(NOW + 3_600_000).parts)
  assert.equal(at(NOW).still, at(NOW + 3_600_000).still)
})

test('what goes as it should is one row; what does not, and what was asked for, is not', () => {
  const ready = (id: number) => anEvent({ id, type: id % 2 ? 'worker.forked' : 'worker.ready' })
  const planned = (id: number) => anEvent({ id, cause: 'deploy', code: 0 })
  const events = [planned(12), planned(11), ready(10), ready(9), anEvent({ id: 8, cause: 'crash' }), ready(7), ready(6),
    ready(5), anEvent({ id: 4, cause: 'deploy', signal: 'SIGKILL' }), ready(3), ready(2), ready(1), ready(0)]
  const show = (query: string) =>
    historyModel({ history: aHistory(events), params: new URLSearchParams(query), now: NOW })
  assert.deepEqual(
    show('release=r1').rows.map((row) => row.id === null ? row.event.id : [row.id, row.summary, row.events.length]),
    [['fold-9', '1 worker became ready, 2 ended as planned, 1 was forked', 4], 8, 7, 6, 5, 4, ['fold-0',
      '2 workers became ready, 2 were forked', 4]]
  )
  assert.match(views.render('pages/history', show('')), /<details id="fold-0-events">/)
  for (const query of ['q=x', 'type=worker.*', 'cause=deploy', 'slot=1', 'worker=7', 'rollout=1'])
    assert.equal(show(query).rows.length, events.length, query)
})

test('a time from which no event is kept any more is told as such', () => {
  const show = (until: string) =>
    views.render('pages/history',
      historyModel({ history: aHistory([]), params: new URLSearchParams({ since: '2020-01-01T00:00:00Z', until }),
        now: NOW, keptMs: () => 30 * 86_400_000 }))
  assert.match(show('2020-01-02T00:00:00Z'), /Past time, not live/)
  assert.match(show(new Date(NOW + 1).toISOString()), /Live: new events appear at the top/)
  assert.match(show('2020-01-02T00:00:00Z'), /Events are kept for 30 days; this time is longer ago\.<\/strong>/)
  assert.match(show(new Date(NOW).toISOString()), /No event matches these filters/)
})

test('a fold is whole on one page, keeps its name while newer events push it down, and lists what fits', () => {
  const crash = (id: number) => anEvent({ id, cause: 'crash' })
  const ready = (id: number) => anEvent({ id, type: 'worker.ready' })
  const all = [...Array.from({ length: 40 }, (_, index) => crash(1000 - index)),
    ...Array.from({ length: 400 }, (_, index) => ready(900 - index)), crash(400), ready(399)]
  const history = fake<History>({ page ({ limit = 0, cursor } = {}) {
    const from = cursor === undefined ? 0 : Number(cursor)
    return { items: all.slice(from, from + limit), next: from + limit < all.length ? String(from + limit) : null }
  } })
  const show = (query: string) => historyModel({ history, params: new URLSearchParams(query), now: NOW })
  const { rows, links, isCutShort } = show('')
  assert.equal(isCutShort, false)
  const fold = rows.at(-1) as typeof rows[number] & { id: string }
  assert.deepEqual([rows.length, fold.id, fold.summary, fold.count, fold.events.length], [41, 'fold-501',
    '400 workers became ready', 400, 100])
  assert.match(views.render('pages/history', show('')),
    /href="\/history\?type=worker\.ready&amp;since=[^"]*">All 400 events/)
  assert.deepEqual(show(String(links.older?.split('?')[1])).rows.map((row) => row.id ?? row.event.id), [400, 399])
  all.unshift(...Array.from({ length: 30 }, (_, index) => crash(2000 - index)))
  assert.equal(show('').rows.at(-1)?.id, 'fold-501')
})

test('an event has one line as its headline and the rest as facts, without what reorders text', () => {
  const message = `worker 7 (slot 1) exited with code 1: Error: user\u202etxt\u0000\n    at ${'x'.repeat(300)}`
  const event = anEvent({ message,
    detail: { stack: 'at \u202e', crashGroup: 4, isDirty: false, waitMs: 1500, per1000RequestsBytes: 2048,
      '\u202ename': '\u202evalue', list: ['\u2066'] } })
  const html = views.render('pages/event', eventModel({ history: aHistory([event]), id: '1', now: NOW }))
  assert.match(html,
    /<h1><bdi>Worker 7 \(slot 1\) exited with code 1: Error: user&lt;U\+202E&gt;txt\u2400 …<\/bdi><\/h1>/)
  const facts = Object.fromEntries(
    Array.from(html.matchAll(/<dt><bdi>(.*?)<\/bdi><\/dt><dd>(.*?)<\/dd>/g),
      ([, name, value]) => [name, value.replace(/<[^>]*>/g, '')])
  )
  assert.deepEqual(facts, { Slot: '1', Worker: '7', 'Crash group': '4', 'Is dirty': 'no', Wait: '1.5 s',
    'Per 1000 requests': '2 KB', '&lt;U+202E&gt;name': '&lt;U+202E&gt;value' })
  assert.match(html, /aria-label="Message">Worker 7 .*\n {4}at x{300}</)
  for (const character of ['\u0000', '\u202e', '\u2066']) assert.ok(!html.includes(character))
})

test('an event of a rollout says each thing once, and times as people read them', () => {
  const rollout = { id: 4, kind: 'deploy', from: 'r1', to: 'r2', actor: 'ada', state: 'held', done: false,
    pausedIn: null, verdicts: [], startedAt: '2026-01-02T03:03:00.000Z', reason: 'worker 7 failed' }
  const event = anEvent({ type: 'rollout.held', slot: null, worker: null, cause: 'deploy', release: 'r2', rollout: 4,
    actor: 'ada', message: 'worker 7 failed; retry', detail: rollout })
  const { facts, detail } = eventModel({ history: aHistory([event]), id: '1', now: NOW })
  assert.deepEqual(facts.map(({ name, value }) => [name, value]), [['Cause', 'deploy'], ['Release', 'r2'], ['Rollout',
    '4'], ['By', 'ada'], ['From', 'r1'], ['State', 'held'], ['Started at', '2026-01-02T03:03:00.000Z']])
  assert.equal(detail, null)
  assert.match(views.render('pages/event', eventModel({ history: aHistory([event]), id: '1', now: NOW })),
    /<dt><bdi>Started at<\/bdi><\/dt><dd><time [^>]*>02 Jan 03:03:00</)
})

test('an event has what happened just before and after, without itself and without who looked', () => {
  const events = [anEvent({ id: 3, at: '2026-01-02T03:04:12.000Z' }), anEvent({ id: 2, type: 'access.signed-in' }),
    anEvent({ id: 1, at: '2026-01-02T03:04:00.000Z' })]
  const history = aHistory(events)
  history.page = ({ since, until } = {}) => ({
    items: events.filter(({ at }) => Date.parse(at) >= Number(since) && Date.parse(at) < Number(until)),
    next: null
  })
  assert.deepEqual(eventModel({ history, id: '1', now: NOW }).events.map(({ id, offset }) => [id, offset]), [[3,
    '12 s after']])
})

test('an event that is not there is told so', () => {
  for (const id of ['2', 'abc', '-1', '1e3', '9'.repeat(30)]) {
    assert.throws(() => eventModel({ history: aHistory([anEvent()]), id, now: NOW }), { code: 'not-found' })
  }
})
