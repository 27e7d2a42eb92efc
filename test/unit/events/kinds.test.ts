import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { STATES } from '../../../server/fleet/document.ts'
import { FAULTS } from '../../../server/causes.ts'
import { ALERTS, EVENT_TYPES, NOTABLE_TYPES, PROBLEMS, isInTerminal, kindOf } from '../../../server/events/kinds.ts'
import { sentenceOf } from '../../../server/events/sentences.ts'
import { fake } from '../../support/fake.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'

const SERVER = fileURLToPath(new URL('../../../server/', import.meta.url))
/** What hands an event to the stream: the publisher, and the words of the lifecycle for it. */
const PUBLISHED = /\b(?:publish\(\{\s*type: |tell(?:Of)?\(|tellRollout\(\w+, )(['`])([^'`\n]+)\1/g
const IS_TYPE = /^[a-z]+\.[a-z-]+$|^unexpected$/

const sources = readdirSync(SERVER, { recursive: true }).map(String).filter((name) =>
  name.endsWith('.ts') && name !== 'events/kinds.ts'
).map((name) => readFileSync(SERVER + name, 'utf8'))
const types = sources.flatMap((source) => Array.from(source.matchAll(PUBLISHED), ([, , type]) => type)).filter((type) =>
  IS_TYPE.test(type)
)

test('every type that the code publishes is in the table', () => {
  assert.ok(types.length > 40, `found only ${types.length}: does the code publish in another way now?`)
  assert.deepEqual([...new Set(types).difference(new Set<string>(EVENT_TYPES))], [])
})

test('every type of the table is published by the code', () => {
  const text = sources.join('\n')
  const ofFleet = [...Object.keys(STATES).filter((state) => state !== 'running'), 'started', 'resumed', 'aborted'].map((
    moment
  ) => `fleet.rollout-${moment}`)
  assert.match(text, /publishEvent\(`fleet\.rollout-\$\{type\}`/)
  assert.deepEqual(EVENT_TYPES.filter((type) => !ofFleet.includes(type) && !text.includes(`'${type}'`)), [])
})

test('the weights contain one another: an alert is a problem or follows from one, a problem is notable', () => {
  assert.deepEqual(ALERTS.filter((name) => !PROBLEMS.includes(name)), ['crash.group-new', 'crash.group-returned'])
  assert.deepEqual(PROBLEMS.filter((name) => !NOTABLE_TYPES.includes(name.split(':')[0])), [])
  assert.ok(ALERTS.includes('master.stopped:master-lost') && !ALERTS.includes('master.stopped'))
  assert.ok(EVENT_TYPES.includes('worker.forked') && !NOTABLE_TYPES.includes('worker.forked'))
})

test('a problem is the exit that nobody asked for, not the restart that follows it', () => {
  assert.deepEqual(FAULTS.filter((cause) => !PROBLEMS.includes(`worker.exited:${cause}`)), [])
  assert.deepEqual(
    ['worker.exited', 'worker.exited:deploy', 'worker.restarted'].filter((name) => PROBLEMS.includes(name)),
    []
  )
})

test('the terminal shows exits that nobody asked for, and the ends of steps', () => {
  const shows = (event: Partial<DeckEvent>) => isInTerminal(fake({ cause: null, slot: null, detail: null, ...event }))
  const detail = { steps: [{ slot: 1, state: 'done' }, { slot: 2, state: 'draining' }] }
  assert.deepEqual(FAULTS.map((cause) => shows({ type: 'worker.exited', cause })), FAULTS.map(() => true))
  assert.deepEqual(['deploy', null].map((cause) => shows({ type: 'worker.exited', cause })), [false, false])
  assert.deepEqual([1, 2, null].map((slot) => shows({ type: 'rollout.step', slot, detail })), [true, false, false])
  assert.deepEqual(['rollout.started', 'worker.ready', 'future.thing'].map((type) => shows({ type })), [true, false,
    false])
})

test('a verdict has the tone of its outcome, and its sentence says the outcome', () => {
  const judged = (...passed: (boolean | null)[]) =>
    fake<DeckEvent>({ type: 'rollout.judged', cause: 'deploy', message: 'p50 is 9 ms',
      detail: { kind: 'deploy', to: 'r5', verdicts: passed.map((each) => ({ passed: each })) } })
  const seen = [judged(false, true), judged(true, false), judged(null)]
  assert.deepEqual(seen.map((event) => [kindOf(event).tone, sentenceOf(event)]), [['ok',
    'Deploy of r5: the canary passed: p50 is 9 ms'], ['warn', 'Deploy of r5: the canary failed: p50 is 9 ms'], ['warn',
    'Deploy of r5: the canary was not judged: p50 is 9 ms']])
})

test('a cause changes what is shown only where the table says so', () => {
  assert.deepEqual(['crash', 'hung', 'deploy', null].map((cause) => kindOf({ type: 'worker.exited', cause }).tone), [
    'bad',
    'bad',
    'idle',
    'idle'
  ])
  assert.deepEqual(['master-lost', 'upgrade'].map((cause) => kindOf({ type: 'master.stopped', cause }).label), [
    'Master lost',
    'Master stopped'
  ])
  assert.deepEqual(kindOf({ type: 'constructor', cause: null }), { icon: 'circle', tone: 'idle', label: 'constructor' })
})
