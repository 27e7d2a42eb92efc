import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { createEventStream, type DeckEvent } from '../../../server/events/stream.ts'
import { createRecorder, type Spare } from '../../../server/events/recorder.ts'
import { fake } from '../../support/fake.ts'
import type { SeenEvent } from '../../support/event-log.ts'

/** A history in memory that fails when it is told to, and timers that fire when they are told to. */
function setUp (
  { maxBuffered, away = null, spare, failure = null }: { maxBuffered?: number, away?: string | null, spare?: Spare,
    failure?: Error | null } = {}
) {
  const stored: DeckEvent[] = []
  const calls = { reopen: 0, sweep: 0 }
  const history = { failure, away, movedAside: null, loss: null, record (event: DeckEvent) {
    if (history.failure) throw history.failure
    stored.push(event)
  }, reopen () {
    calls.reopen++
  }, retreat (reason: string) {
    history.away = reason
  }, sweep () {
    calls.sweep++
    return { deleted: 0, more: calls.sweep < 3 }
  } }
  const timers = new Map() as Map<number, { work: () => void, ms: number }>
  let lastTimer = 0
  const events = createEventStream()
  const published: SeenEvent[] = []
  const recorder = createRecorder({ history, events, spare }, { setTimer: (work, ms) => {
    timers.set(++lastTimer, { work, ms })
    return lastTimer
  }, clearTimer: (timer) => timers.delete(Number(timer)), ...(maxBuffered === undefined ? {} : { maxBuffered }) })
  events.subscribe((event) => published.push(event as SeenEvent))
  recorder.begin()

  return {
    history,
    stored,
    events,
    published,
    recorder,
    calls,
    timers,
    /** Fires the newest timer and says how long it had been set for. */
    fire () {
      const [id, timer] = [...timers].at(-1) as [number, { work: () => void, ms: number }]
      timers.delete(id)
      timer.work()
      return timer.ms
    },
    types: () => stored.map(({ type }) => type)
  }
}

const busy = () => Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
const turn = () =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

test('an event is stored before publish returns', () => {
  const { events, stored } = setUp()
  const event = events.publish({ type: 'worker.ready', slot: 1 })
  assert.deepEqual(stored, [event])
})

test('a database that fails never reaches the publisher, and is told once', async () => {
  const { history, events, published, recorder } = setUp()
  history.failure = busy()
  events.publish({ type: 'worker.ready' })
  events.publish({ type: 'worker.exited' })
  await turn()
  events.publish({ type: 'worker.forked' })
  await turn()
  assert.match(String(recorder.state.problem), /database is locked/)
  assert.deepEqual(published.map(({ id, type }) => [id, type]), [[1, 'worker.ready'], [2, 'worker.exited'], [3,
    'history.degraded'], [4, 'worker.forked']])
  assert.match(published[2].message, /database is locked \(SQLITE_BUSY\)/)
})

test('what happened meanwhile is stored in order once the database is back, and nothing is missing', async () => {
  const { history, events, fire, stored, published, recorder, types } = setUp()
  events.publish({ type: 'master.started' })
  history.failure = busy()
  for (let n = 0; n < 250; n++) events.publish({ type: 'worker.ready' })
  await turn()
  fire()
  assert.equal(stored.length, 1)
  history.failure = null
  fire()
  // Only so many a turn; what happens between the turns waits its turn too.
  assert.equal(stored.length, 101)
  events.publish({ type: 'worker.exited' })
  assert.equal(stored.length, 101)
  fire()
  fire()
  assert.equal(recorder.state.problem, null)
  assert.deepEqual(stored.map(({ id }) => id), Array.from({ length: 254 }, (_, index) => index + 1))
  assert.deepEqual([...new Set(types())], ['master.started', 'worker.ready', 'history.degraded', 'worker.exited',
    'history.recovered'])
  assert.deepEqual(published.at(-1)?.detail, { since: published[1].at, lost: 0 })
})

test('retries come less and less often, and soon again after a recovery', async () => {
  const { history, events, fire } = setUp()
  history.failure = busy()
  events.publish({ type: 'worker.ready' })
  await turn()
  const delays = Array.from({ length: 10 }, () => fire())
  assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  history.failure = null
  fire()
  history.failure = busy()
  events.publish({ type: 'worker.ready' })
  assert.equal(fire(), 250)
})

test('the buffer is bounded: the oldest events are lost and counted', async () => {
  const { history, events, fire, stored, published } = setUp({ maxBuffered: 10 })
  history.failure = busy()
  for (let n = 0; n < 15; n++) events.publish({ type: n % 3 ? 'worker.ready' : 'worker.exited' })
  await turn()
  history.failure = null
  fire()
  assert.deepEqual(stored.map(({ id }) => id), [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17])
  const [{ at: from }, { at: to }] = [published[0], published[5]]
  assert.equal(published.at(-1)!.message,
    `the history database works again; 6 events were lost, from ${from} to ${to}: 4 worker.ready, 2 worker.exited`)
  assert.deepEqual(published.at(-1)!.detail, { since: from, lost: 6, from, to,
    types: { 'worker.ready': 4, 'worker.exited': 2 } })
})

test('a database that is locked or full is waited for; one that is broken is opened anew', async () => {
  for (const [code, reopened] of [['SQLITE_BUSY', 0], ['SQLITE_FULL', 0], ['SQLITE_CORRUPT', 1], ['SQLITE_IOERR_WRITE',
    1]] as [string, number][])
  {
    const { history, events, fire, calls } = setUp()
    history.failure = Object.assign(new Error('no'), { code })
    events.publish({ type: 'worker.ready' })
    await turn()
    fire()
    assert.equal(calls.reopen, reopened, code)
  }
})

for (const [what, options, prepare] of [['works again', { failure: busy() }, (history) => {
  history.failure = null
}], ['was away since the start', { away: 'database is locked (SQLITE_BUSY)' }, (history) => {
  history.reopen = () => {
    history.away = null
  }
}], ['has to be opened anew', { failure: Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' }) },
  (history) => {
    history.reopen = () => {
      history.failure = null
    }
  }]] as [string, Parameters<typeof setUp>[0], (history: ReturnType<typeof setUp>['history']) => void][])
{
  test(`closing writes what still waits, and that nothing is lost, into a database that ${what}, and stops every timer`, async () => {
    const { history, events, recorder, timers, stored } = setUp(options)
    events.publish({ type: 'worker.ready' })
    await turn()
    stored.length = 0
    prepare(history)
    await recorder.close()
    assert.deepEqual(stored.map(({ type }) => type), ['worker.ready', 'history.degraded', 'history.recovered'])
    assert.equal(timers.size, 0)
    events.publish({ type: 'worker.exited' })
    assert.equal(stored.length, 3)
  })
}

test('closing beside a database that is out of reach says nothing else, and leaves what waits to the one who keeps it', async () => {
  const kept: string[] = []
  const { recorder, timers, events, published } = setUp({ failure: busy(),
    spare: { events: [], keep: ({ type }) => kept.push(type), clear: () => kept.push('cleared') } })
  events.publish({ type: 'worker.ready' })
  await turn()
  await recorder.close()
  assert.deepEqual(kept, ['worker.ready', 'history.degraded'])
  assert.deepEqual(published.map(({ type }) => type), ['worker.ready', 'history.degraded'])
  assert.equal(timers.size, 0)
})

test('the history is swept in slices, then again an hour later', () => {
  const { fire, calls } = setUp()
  assert.deepEqual([fire(), fire(), fire(), calls.sweep], [50, 50, 50, 3])
  assert.equal(fire(), 60 * 60 * 1000)
})

for (const [what, from, told] of [['is no database any more', 0, /nobody knows how many events were lost, as its/], [
  'is damaged in a part, so that it opens but takes nothing',
  1 / 3,
  /; 301 events were lost, from 20\S+Z to 20\S+Z: 300 worker\.ready, 1 master\.started$/
]] as [string, number, RegExp][]) {
  test(`a real database that ${what} while the master runs is replaced, what it had is told, and the events go on`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'clusterdeck-recorder-'))
    const file = join(folder, 'history.db')
    const history = openHistory({ file })
    t.after(() => {
      history.close()
      rmSync(folder, { recursive: true })
    })
    const events = createEventStream()
    const recovered = new Promise((resolve) =>
      events.subscribe(({ type, message }) => {
        if (type === 'history.recovered') resolve(message)
      })
    )
    const recorder = createRecorder({ history, events }, {
      setTimer: (work, ms) => setTimeout(work, Math.min(ms, 5)).unref()
    })
    events.publish({ type: 'master.started' })
    for (let n = 0; n < 300; n++) events.publish({ type: 'worker.ready', message: 'x'.repeat(500) })
    // As after a disk fault: the open file cannot be used.
    history.close()
    const content = readFileSync(file)
    writeFileSync(file, content.fill(0xee, Math.floor(content.length / 4096 * from) * 4096))
    events.publish({ type: 'worker.exited', cause: 'crash' })
    const keepAlive = setInterval(() => {}, 1000)
    assert.match(String(await recovered), told)
    clearInterval(keepAlive)
    await recorder.close()
    assert.deepEqual(history.page().items.map(({ id, type }) => [id, type]), [[304, 'history.recovered'], [303,
      'history.degraded'], [302, 'worker.exited']])
    assert.match(String(history.movedAside), /history\.db\.damaged-/)
  })
}

test('a history that is away at the start is degraded from the first event on, shows what happens, and has all of it later', async () => {
  const { history, stored, events, published, recorder, fire } = setUp({ away: 'the disk is full' })
  assert.equal(recorder.state.problem, 'the disk is full')
  events.publish({ type: 'worker.ready' })
  await turn()
  assert.deepEqual(published.map(({ type }) => type), ['worker.ready', 'history.degraded'])
  assert.deepEqual(stored.splice(0).map(({ type }) => type), ['worker.ready', 'history.degraded'], 'in memory')
  fire()
  assert.deepEqual(stored, [], 'it is away still')
  history.reopen = () => {
    history.away = null
  }
  fire()
  await turn()
  assert.deepEqual(stored.map(({ type }) => type), ['worker.ready', 'history.degraded', 'history.recovered'])
  assert.equal(recorder.state.problem, null)
})

test('what the process before could not write is written first, or shown until it can be', async () => {
  const before = fake<DeckEvent[]>([{ id: 7, type: 'worker.exited' }])
  const kept: unknown[] = []
  const spare = { events: before, keep: (event: DeckEvent) => kept.push(event.id), clear: () => kept.push('cleared') }
  const well = setUp({ spare })
  assert.deepEqual(well.types(), ['worker.exited'])
  well.fire()
  assert.deepEqual([well.types(), kept.splice(0)], [['worker.exited', 'history.recovered'], ['cleared']])

  const full = Object.assign(new Error('full'), { code: 'SQLITE_FULL' })
  const ill = setUp({ spare, failure: full })
  assert.match(String(ill.recorder.state.problem), /full \(SQLITE_FULL\)/)
  ill.events.publish({ type: 'worker.forked' })
  assert.deepEqual(kept, [1], 'for the next one')
})
