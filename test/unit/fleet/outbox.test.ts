import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { openHistory } from '../../../db/history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { createOutbox } from '../../../server/fleet/outbox.ts'
import { recordedIn } from '../../support/fleet-events.ts'
import { rareTest } from '../../support/rare.ts'
import { playScenes } from '../../support/scenes.ts'
import { errorCode, errorText } from '../../../server/errors.ts'
import { fake } from '../../support/fake.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { StoredMsg } from '@nats-io/jetstream'
import type { Connection, Open } from '../../../server/fleet/nats-connection.ts'
import type { SeenEvent } from '../../support/event-log.ts'

const NAMES = { events: 'events', subject: 'clusterdeck.test' }
/**
 * Whatever comes of a publish: all is well, it never arrives, its acknowledgement does not, it arrives after the next
 * question.
 */
const OUTCOMES = ['acknowledged', 'lost', 'unacknowledged', 'late'] as const

/**
 * A stream and the way to it, as they are at their worst. Nothing takes time.
 * @param options `outcomes`: one for each publish, and then all is well
 */
function createFakeEngine (
  { outcomes = [], maxPayload = 1024 * 1024 }: { outcomes?: Iterable<typeof OUTCOMES[number]>, maxPayload?: number } =
    {}
) {
  const ahead = outcomes[Symbol.iterator]()
  let stored: { seq: number, subject: string, msgID: string,
    value: { source: string, member: string, event: SeenEvent }, length: number }[] = []
  let lastSeq = 0
  let known = new Set()
  /** what is on its way still */
  let late: (() => void)[] = []
  const users: Set<(open: Open) => Promise<unknown>> = new Set()
  let isOpen = false

  const open = fake<Open>({ names: NAMES, connection: { info: { max_payload: maxPayload } },
    js: { async publish (subject: string, data: string, { msgID }: { msgID: string }) {
      const outcome = ahead.next().value ?? 'acknowledged'
      await null
      const put = () => store({ subject, msgID, data })
      if (outcome === 'late') late.push(put)
      if (outcome === 'unacknowledged') put()
      if (outcome !== 'acknowledged') throw new Error('no acknowledgement')
      arrive()
      return put()
    } },
    manager: {
      streams: { info: async () => ({ state: { first_seq: stored[0]?.seq ?? lastSeq + 1, last_seq: lastSeq } }),
        async getMessage (_name: string, { last_by_subj: pattern }: { last_by_subj: string }) {
          const meant = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace('>', '.+')}$`)
          const last = stored.findLast(({ subject }) => meant.test(subject))
          queueMicrotask(arrive)
          return last
            ? fake<StoredMsg>({ seq: last.seq, subject: last.subject, data: Buffer.alloc(last.length), json: () =>
              last.value })
            : null
        } }
    } })

  return {
    use (use: (open: Open) => Promise<unknown>) {
      users.add(use)
      if (isOpen) use(open)
      return () => users.delete(use)
    },

    callMs: 1000,

    async attempt (work: (open: Open) => Promise<unknown>) {
      if (!isOpen) return { is: 'away' as const, reason: 'away' }
      try {
        return { is: 'done' as const, value: await work(open) }
      } catch (error) {
        if (errorCode(error) === 'ERR_ASSERTION') throw error
        return { is: 'away' as const, reason: errorText(error) }
      }
    },

    connect () {
      isOpen = true
      for (const use of users) use(open)
    },
    disconnect () {
      isOpen = false
    },
    /** As after a restore from a backup: what is on its way goes nowhere. `share`: of what is stored. */
    forget (share: number) {
      stored = stored.slice(0, Math.floor(stored.length * share))
      lastSeq = stored.at(-1)?.seq ?? 0
      known = new Set()
      late = []
    },
    /** As by its limits. `share`: of what is stored. */
    discard (share: number) {
      stored = stored.slice(Math.ceil(stored.length * share))
    },
    /** After the time for which it remembers. */
    forgetDuplicates () {
      arrive()
      known = new Set()
    },
    get stored () {
      return stored
    }
  }

  function arrive () {
    for (const put of late.splice(0)) put()
  }

  function store ({ subject, msgID, data }: { subject: string, msgID: string, data: string }) {
    if (known.has(msgID)) return { seq: lastSeq, duplicate: true }
    known.add(msgID)
    stored.push({ seq: ++lastSeq, subject, msgID, value: JSON.parse(data), length: data.length })
    return { seq: lastSeq, duplicate: false }
  }
}

type FakeEngine = ReturnType<typeof createFakeEngine>

/** A deck with a history, whose master can die. */
function createHost (nats: FakeEngine,
  { history = openHistory({ file: ':memory:' }), member = 'one' }: { history?: ReturnType<typeof openHistory>,
    member?: string } = {})
{
  const events = createEventStream({ lastId: history.lastEventId() })
  events.subscribe(history.record)
  const timers = fake<typeof globalThis>({ setTimeout: (work) => setImmediate(work), clearTimeout: clearImmediate })
  let isAlive = true
  let inFlight = 0
  // One that is dead sends nothing any more, and hears nothing.
  const never = new Promise<never>(() => {})
  const publish = async (open: Open, args: Parameters<Open['js']['publish']>) => {
    if (!isAlive) return never
    assert.equal(++inFlight, 1, 'one at a time')
    try {
      return await open.js.publish(...args)
    } finally {
      inFlight--
    }
  }
  const own = fake<Connection>({ callMs: nats.callMs, use: (use) =>
    nats.use(async (open) => {
      if (isAlive) await use(open)
    }),
    attempt: (work) =>
      isAlive
        ? nats.attempt((open) => work({ ...open, js: fake({ publish: (...args) => publish(open, args) }) }))
        : never })
  const outbox = createOutbox({ nats: own, history: { ...history, outbox: { ...history.outbox, write: (row) => {
    if (isAlive) history.outbox.write(row)
  } }, get away () {
    return null
  } }, events, teller: () => ({ member, app: 'shop', host: 'here' }), timers })
  return { history, outbox, happen (count: number, type: string = 'worker.forked') {
    for (let n = 0; n < count; n++) events.publish({ type, worker: n + 1 })
  }, record (event: Pick<DeckEvent, 'id' | 'message' | 'detail'> & { type?: string }) {
    history.record({ type: 'unexpected', at: new Date().toISOString(), cause: null, slot: null, worker: null, pid: null,
      release: null, rollout: null, actor: null, code: null, signal: null, uptimeMs: null, ...event })
  }, die () {
    isAlive = false
  }, async settled () {
    for (let turn = 0; turn < 100_000; turn++) {
      if (outbox.state.waiting === 0 && outbox.state.problem === null) return
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.fail(`not settled: ${JSON.stringify(outbox.state)}`)
  } }
}

function copyOf (history: ReturnType<typeof openHistory>) {
  const copy = openHistory({ file: ':memory:' })
  recordedIn(history).forEach(copy.record)
  copy.outbox.write(history.outbox.read()!)
  return copy
}

function idsIn (nats: FakeEngine): number[] {
  return nats.stored.map(({ value }) => value.event.id)
}

function range (from: number, to: number) {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

/** What the stream has, by whom it was told: each other source of events is one anew. */
function spansOf ({ stored }: FakeEngine): string {
  const spans: { source: string, member: string, from: number, to: number }[] = []
  for (const { value: { source, member, event: { id } } } of stored) {
    const last = spans.at(-1)
    if (last?.source === source && last.member === member && last.to === id - 1) last.to = id
    else spans.push({ source, member, from: id, to: id })
  }
  return spans.map(({ source, member, from, to }) =>
    `${member}${source === spans[0].source ? '' : ' anew'} ${from}–${to}`
  ).join(', ')
}

rareTest(
  'every event is in the stream once and in order, whatever is lost on the way, whenever master or nats end, and whatever NATS forgets',
  async () => {
    const step = fc.oneof({ weight: 6,
      arbitrary: fc.record({ do: fc.constant('happen'), count: fc.integer({ min: 1, max: 30 }) }) }, { weight: 3,
      arbitrary: fc.record({ do: fc.constant('turn'), count: fc.integer({ min: 1, max: 20 }) }) }, { weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('disconnect', 'connect', 'die', 'settle') }) }, { weight: 1,
      arbitrary: fc.record({ do: fc.constantFrom('rename', 'wipe', 'forgetDuplicates') }) }, { weight: 1,
      arbitrary: fc.record({ do: fc.constant('forget'), share: fc.double({ min: 0.1, max: 1, noNaN: true }) }) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }),
        fc.array(fc.constantFrom(...OUTCOMES, 'acknowledged' as const, 'acknowledged' as const), { maxLength: 60 }),
        async (steps, outcomes) => {
          const nats = createFakeEngine({ outcomes })
          let host = createHost(nats)
          let member = 'one'
          nats.connect()
          const replace = () => {
            host.die()
            host = createHost(nats, { history: host.history, member })
          }
          for (const each of steps as { do: string, count: number, share: number }[]) {
            if (each.do === 'happen') host.happen(each.count)
            if (each.do === 'turn') {
              for (let n = 0; n < each.count; n++) await new Promise((resolve) => setImmediate(resolve))
            }
            if (each.do === 'connect' || each.do === 'disconnect') nats[each.do as 'connect']()
            if (each.do === 'die') replace()
            if (each.do === 'rename') {
              member += 'x'
              replace()
            }
            if (each.do === 'settle') {
              nats.connect()
              await host.settled()
            }
            // Whoever has lost something is connected to anew.
            if (each.do === 'forget' || each.do === 'wipe') {
              nats.disconnect()
              await new Promise((resolve) => setImmediate(resolve))
              nats.forget(each.share ?? 0)
              nats.connect()
            }
            // A publish whose outcome is unknown is repeated well before that.
            if (each.do === 'forgetDuplicates') {
              nats.connect()
              await host.settled()
              nats.forgetDuplicates()
            }
          }
          host.happen(1)
          nats.connect()
          await host.settled()
          host.die()
          assert.deepEqual(idsIn(nats), range(1, host.history.lastEventId()))
          host.history.close()
        }),
      { numRuns: 300 }
    )
  }
)

playScenes(`
a fleet that is new to a deck gets the last 1,000 of its events, and then each, however many come while NATS is away
  one has 1500 worker.forked; connect; one has 3 worker.forked  → one 501–1503
  disconnect; one has 2000 worker.forked; connect               → one 501–3503
what the limits of the stream have taken is not told again
  connect; one has 30 worker.forked; one ends; all is discarded; one begins; one has 2 worker.forked  → one 31–32
a history that was restored from a backup tells what happens from then on under another name, none of it left out
  connect; one has 10 worker.forked; one ends; one is copied; one begins; one has 5 worker.ready  → one 1–15
  one ends; disconnect; one begins with the copy; one has 8 worker.forked; connect; one has 1 worker.forked
                                      → one 1–15, one anew 11–19
two decks with a copy of one history tell all that happens on each
  connect; one has 10 worker.forked; one is copied; two begins with the copy; one has 3 worker.ready  → one 1–13
  two has 5 scale.changed; one has 2 worker.ready  → one 1–13, two anew 11–15, one 14–15`, { open () {
  const nats = createFakeEngine()
  return { nats, isOpen: false, hosts: { one: createHost(nats) } as Record<string, ReturnType<typeof createHost>>,
    copy: openHistory({ file: ':memory:' }) }
}, acts: { async connect (stage) {
  stage.nats.connect()
  stage.isOpen = true
  for (const host of Object.values(stage.hosts)) await host.settled()
}, disconnect (stage) {
  stage.nats.disconnect()
  stage.isOpen = false
}, async 'NAME has COUNT TYPE' ({ hosts, isOpen }, name, count, type) {
  hosts[name].happen(Number(count), type)
  if (isOpen) await hosts[name].settled()
}, async 'NAME ends' ({ hosts }, name) {
  await hosts[name].outbox.close()
  hosts[name].die()
}, 'NAME begins' ({ nats, hosts }, name) {
  hosts[name] = createHost(nats, { history: hosts[name].history })
}, 'NAME is copied' (stage, name) {
  stage.copy = copyOf(stage.hosts[name].history)
}, async 'NAME begins with the copy' ({ nats, hosts, copy, isOpen }, name) {
  hosts[name] = createHost(nats, { history: copy, member: name })
  if (isOpen) await hosts[name].settled()
}, 'all is discarded' ({ nats }) {
  nats.discard(1)
  nats.forgetDuplicates()
} }, see: ({ nats }) => spansOf(nats) })

test('what retention has taken before it was told is left out', async () => {
  const nats = createFakeEngine()
  let now = 0
  const history = openHistory({ file: ':memory:', now: () => now, retention: { maxEvents: 5 } })
  const host = createHost(nats, { history })
  host.happen(20)
  now = Date.now()
  while (history.sweep().more);
  nats.connect()
  await host.settled()
  assert.deepEqual(idsIn(nats), range(16, 20))
})

test('an event that another host tells is left out, and what comes after it is told', async () => {
  const nats = createFakeEngine()
  const host = createHost(nats)
  nats.connect()
  for (const [id, isReporter] of [[1, true], [2, false], [3, true], [4, false], [5, true]] as const)
    host.record({ id, type: 'fleet.host-silent', message: 'web-3 is silent', detail: { isReporter } })
  host.happen(0)
  await host.settled()
  assert.deepEqual(idsIn(nats), [1, 3, 5])
})

test('an event that is too large goes without its details', async () => {
  const nats = createFakeEngine()
  const host = createHost(nats)
  nats.connect()
  host.record({ id: 1, message: 'small', detail: { note: 'n' } })
  host.record({ id: 2, message: 'large',
    detail: { note: 'ö'.repeat(15_000), other: 'ö'.repeat(15_000), third: 'ö'.repeat(15_000) } })
  host.happen(0)
  await host.settled()
  assert.deepEqual(nats.stored.map(({ value }) => [value.event.message, value.event.detail]), [['small', { note: 'n' }],
    ['large', { truncated: true, bytes: nats.stored[1].value.event.detail.bytes }]])
  assert.ok(Number(nats.stored[1].value.event.detail.bytes) > 90_000)
})

test('a NATS server that takes less gets less, and what comes after it is told too', async () => {
  const nats = createFakeEngine({ maxPayload: 8192 })
  const host = createHost(nats)
  nats.connect()
  host.record({ id: 1, message: 'large', detail: { note: 'n'.repeat(9000) } })
  host.record({ id: 2, message: 'small', detail: null })
  host.happen(0)
  await host.settled()
  assert.deepEqual(nats.stored.map(({ value }) => [value.event.message, value.event.detail?.truncated]), [['large',
    true], ['small', undefined]])
})
