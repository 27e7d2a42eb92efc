import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemberRuntime } from '../../../server/fleet/member-runtime.ts'
import { startRollout } from '../../../server/fleet/rollout.ts'
import { fake } from '../../support/fake.ts'
import type { Memory } from '../../../server/fleet/member.ts'
import type { Announcement, RolloutStore } from '../../../server/fleet/rollout-store.ts'

const TIMERS = fake<typeof globalThis>({ setTimeout () {}, clearTimeout () {} })

type Told = { is: 'written', revision: number } | { is: 'refused' }

const rollout = (id: number) =>
  startRollout(null, { id, uid: `uid-${id}`, app: 'shop', kind: 'deploy', source: {}, batches: [['a']], pauseMs: 0,
    deadlineMs: 60_000, onFailure: 'hold', absent: [], actor: 'ada', note: null, at: '2026-01-01T00:00:00.000Z' })

/** NATS answers what it is told to, when it is told to. */
function open (memory: Partial<Memory> = {}, parts: object = {}) {
  let announce: (announcement: Announcement) => void = () => {}
  const reads: ((found: { document: object, revision: number }) => void)[] = []
  const writes: ((told: Told) => void)[] = []
  const told: string[] = []
  const rolloutStore = fake<RolloutStore>({ follow (onChange) {
    announce = onChange
    return () => {}
  }, followVersion: () => () => {},
    read: () => new Promise((resolve) => reads.push((value) => resolve({ is: 'done', value }))),
    write: () => new Promise((resolve) => writes.push(resolve)) })
  const runtime = createMemberRuntime({ rolloutStore, member: 'a', boot: 'now',
    memory: { rollout: 0, revision: 0, task: null, ...memory }, remember () {},
    deckAdapter: fake({ release: () => 'r1' }), tell: (event) => told.push(event), timers: TIMERS, ...parts })
  return { runtime, reads, writes, told, announce: (announcement: Announcement) => announce(announcement) }
}

const settle = () => new Promise(setImmediate)

test('an answer that was slower than a write is no news: NATS is asked again', async () => {
  const { runtime, reads, writes, told } = open()
  const asking = runtime.newest()
  runtime.see(rollout(2), 9)
  reads[0]({ document: rollout(1), revision: 5 })
  await settle()
  assert.deepEqual([runtime.document?.id, runtime.seen.rollout, reads.length], [2, 2, 2])
  reads[1]({ document: rollout(2), revision: 9 })
  await settle()
  reads[2]({ document: rollout(2), revision: 9 })
  assert.equal((await asking)?.id, 2)
  assert.deepEqual([writes.length, told], [0, []])
})

test('that NATS has forgotten is told once it has taken what is written to it, and not where an old answer said so', async () => {
  for (const isForgotten of [false, true]) {
    const { runtime, reads, writes, told } = open({ rollout: 2, revision: 9 })
    runtime.newest()
    reads[0]({ document: rollout(1), revision: 5 })
    await settle()
    assert.deepEqual([writes.length, told], [1, []])
    writes[0](isForgotten ? { is: 'written', revision: 6 } : { is: 'refused' })
    await settle()
    assert.deepEqual(told, isForgotten ? ['fleet.forgotten'] : [])
    if (isForgotten) continue
    reads[1]({ document: rollout(2), revision: 9 })
    await settle()
    assert.deepEqual([runtime.document?.id, told], [2, []])
  }
})

test('a flood of announcements is not read one by one, and what was announced last is read', async () => {
  let nowMs = 0
  /** of what waits for a while, and not for its turn in a rollout */
  const later: (() => void)[] = []
  const timers = { ...TIMERS, setTimeout: (work: () => void, ms: number) => ms <= 100 && later.push(work) }
  const { reads, announce } = open({}, { now: () => nowMs, timers })
  let answered = 0
  const flood = async () => {
    for (let n = 0; n < 500; n++) {
      announce({ id: 5, revision: 100 + n, state: 'running', due: [] })
      for (; answered < reads.length; answered++) reads[answered]({ document: rollout(4), revision: 3 })
      await settle()
    }
  }
  await flood()
  assert.deepEqual([reads.length, later.length], [20, 1])
  nowMs += 100
  later[0]()
  assert.equal(reads.length, 21)
  await flood()
  assert.deepEqual([reads.length, later.length], [21, 2])
})
