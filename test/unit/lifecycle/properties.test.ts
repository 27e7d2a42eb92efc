import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { listStandbys } from '../../../server/lifecycle/promotion.ts'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { isOccupied, stopsFirst } from '../../../server/lifecycle/slot.ts'
import { happen, type Words } from '../../support/happenings.ts'
import { NEW_RELEASE, OPTIONS, orphan, simulate, verdict, type Simulation } from '../../support/simulation.ts'
import type { LifecycleOptions, Worker } from '../../../server/lifecycle/state.ts'

/** Anything that may happen to a cluster at any time, where W is one of its workers. */
const HAPPENINGS = ['W ready', 'W ready', 'W ready', 'W held', 'W read-slot name=NODE_APP_INSTANCE', 'W active',
  'W idle', 'W listens http://localhost:3000', 'W listens http://localhost:3001',
  'W listens http://localhost:3000 isFixed=false', 'W closes http://localhost:3000', 'W holds webSockets=2',
  'W holds requests=1', 'W holds webSockets=1 requests=1', 'W drained', 'W drained heapBytes=268435456', 'W crashing',
  'W stopping', 'W exits 1', 'W exits 0', 'W exits SIGKILL', 'W restarted', 'W silent', 'W answered', 'W captured',
  'W due', 'W due cause=app-request', 'W killed', 'end-connections worker=W actor=api', 'heap-too-large worker=W',
  'wait 1 s', 'wait 20 s', 'a deadline', 'a deadline', 'a starved deadline', 'deploy', 'deploy unprepared hasty',
  'deploy unprepared canaries hold', 'deploy canary', 'deploy stop-first', 'deploy stop-first two-at-once hold',
  'deploy unprepared in-turn', 'restart', 'restart in-turn', 'others first', 'its turn', 'rollback r1', 'rollback r2',
  'prepared r9', 'prepared r9 hasHook=true', 'release-not-prepared rollout=1 reason=full', 'hook passed',
  'hook failed reason="it exited with code 1"', 'pause', 'resume', 'abort', 'promote', 'retry', 'judged good',
  'judged bad', 'judged unclear', 'judged good early', 'judged bad early', 'scale 1', 'scale 2', 'scale 4', 'scale 5',
  'an age of 0.2 s', 'no age', 'no standby', '2 standbys', 'drift r1', 'drift r2', 'restore']
const WORDS: Words = {
  orders: { hasty: { strategy: { surge: 2, minReadyMs: 500, onFailure: 'hold', limits: { crashes: 1 } } },
    canaries: { strategy: { surge: '50%', canary: { workers: 2, durationMs: 1000 } } },
    'two-at-once': { strategy: { surge: 2 } } },
  acts: { 'a deadline': (pool) => void pool.passNextDeadline(), 'a starved deadline': (pool) =>
    void pool.passNextDeadline({ starvedMs: 20_000 }), 'others first': (pool) =>
      pool.feed({ type: 'rollout-waits', rollout: pool.asking ?? 1, apps: ['shop'] }), 'its turn': (pool) =>
      pool.feed({ type: 'rollout-turn-came', rollout: pool.asking ?? 1 }), 'an age of 0.2 s': (pool) =>
      configure(pool, { recycle: { maxAgeMs: 200 } }), 'no age': (pool) =>
      configure(pool, { recycle: { maxAgeMs: 0 } }), 'no standby': (pool) => wantStandbys(pool, 0),
    '2 standbys': (pool) => wantStandbys(pool, 2) }
}

function configure (pool: Simulation, options: Partial<LifecycleOptions>) {
  return pool.feed({ type: 'configure', options: { ...pool.state.options, ...options } })
}

function wantStandbys (pool: Simulation, standby: number) {
  const { rollout, restart } = pool.state.options
  // The configuration refuses these together.
  return rollout?.order === 'stop-first' || restart.policy ? null : configure(pool, { standby })
}

/** `n`: chooses the worker */
function happenTo (pool: Simulation, what: string, n: number) {
  const workers = [...pool.processes.keys()]
  if (!what.includes('W')) happen(pool, what, WORDS)
  else if (workers.length > 0) happen(pool, what.replace('W', String(workers[n % workers.length])), WORDS)
}

const withOptions = (more: Partial<LifecycleOptions>): LifecycleOptions => ({ ...OPTIONS, ...more })
const policy = (policy: 'on-failure' | 'never') => ({ restart: { ...OPTIONS.restart, policy } })
const options = fc.constantFrom(OPTIONS, withOptions({ rollout: { order: 'stop-first', guardMs: 300_000 } }),
  withOptions(policy('on-failure')),
  withOptions({ ...policy('never'), rollout: { order: 'stop-first', surge: 2, progressDeadlineMs: 20_000 },
    releases: { onDrift: 'hold' } }),
  withOptions({ standby: 2, releases: { onDrift: 'hold' },
    rollout: { guardMs: 300_000, progressDeadlineMs: 20_000, minReadyMs: 500, limits: { crashes: 1 } } }))
const happenings = fc.array(fc.tuple(fc.constantFrom(...HAPPENINGS), fc.nat(1000)), { maxLength: 120, size: 'max' })
const size = fc.integer({ min: 1, max: 5 })
/** What is known of starts before this one. */
const past = fc.constantFrom({}, { hasBeenReady: false }, { bootCost: { cpuMs: 9000, activeMs: 9000 }, cpus: 2 })

const intent = fc.constantFrom('deploy', 'restart', 'scale-down', 'shutdown', 'boot-failure').map((cause) => ({ cause,
  actor: 'api', rollout: null })
)
const NO_EXIT = { code: null, signal: null }
/** What a dead master may leave behind of one worker: serving or booting, on its way out for a reason, or gone. */
const leftBehind = fc.oneof(
  fc.record({ state: fc.constantFrom('ready' as const, 'starting' as const), intent: fc.constant(null) }),
  fc.record({ state: fc.constantFrom('draining' as const, 'stopping' as const), intent })
).chain((fields) =>
  fc.record({ slot: fc.integer({ min: 1, max: 6 }),
    exit: fc.option(fc.constantFrom(NO_EXIT, { ...NO_EXIT, code: 1 }, { ...NO_EXIT, signal: 'SIGKILL' }), {
      freq: 3
    }) }).map((rest) => ({ ...fields, ...rest }))
)
const orphans = fc.array(leftBehind, { maxLength: 8 }).map((all) =>
  all.map((fields, n) => orphan({ id: n + 1, ...fields }))
)

function run (pool: Simulation, schedule: [string, number][], check: (pool: Simulation) => void) {
  for (const [name, n] of schedule) {
    happenTo(pool, name, n)
    check(pool)
  }
}

function assertConsistent (pool: Simulation) {
  const { slots, workers, recycling, releases } = pool.state
  const { rollout } = pool
  assert.deepEqual(Object.keys(workers).map(Number), [...pool.processes.keys()],
    'the state knows exactly the processes that live')
  for (const slot of slots) {
    const isWaitedFor = (stopsFirst(pool.state) && isOccupied(pool.state, slot.number)) || isQueued(pool)
    assert.ok(slot.serving !== null || slot.retryAt !== null || slot.finished || slot.candidate !== null || isWaitedFor,
      `slot ${slot.number} is never given up`)
    assert.ok(!slot.finished || pool.state.options.restart.policy !== 'always')
    assert.equal(slot.retryAt !== null, pool.deadlines.has(`retry:${slot.number}`),
      `slot ${slot.number} waits exactly when a retry is due`)
    assert.ok(slot.candidate === null || rollout || recycling?.slot === slot.number,
      `slot ${slot.number} has a candidate only in a rollout, or to be recycled`)
    assert.ok(releases[slot.release])
  }
  assert.ok(!recycling || !rollout, 'nothing is recycled during a rollout')
  if (recycling) assert.ok(workers[recycling.worker], 'what is being recycled lives')
  for (const worker of Object.values(workers)) {
    if (worker.state === 'standby') continue
    const watch =
      { starting: 'ready', unresponsive: 'stack', ready: 'steady', draining: 'drain',
        stopping: 'term' }[worker.state as string]
    const isWatched = pool.deadlines.has(`${watch}:${worker.id}`) || pool.processes.get(worker.id)?.isKilled ||
      worker.state === 'ready'
    assert.ok(isWatched, `worker ${worker.id} (${worker.state}) ends ready, exited or timed out`)
  }
  const standing = listStandbys(pool.state)
  assert.ok(standing.length <= (pool.state.options.standby ?? 0), `${standing.length} workers stand by`)
  assert.equal(pool.state.standby.retryAt !== null, pool.deadlines.has('standby:0'),
    'standby workers wait exactly when a try is due')
  // One that has answered again serves until its replacement is ready.
  const isHeld = ({ id, slot }: Worker) =>
    slots.some(({ number, serving, candidate }) => number === slot && (serving === id || candidate === id))
  const holding =
    Object.values(workers).filter((worker) => ['starting', 'ready'].includes(worker.state) && isHeld(worker)).length
  for (const worker of Object.values(workers)) {
    const own = slots.find(({ number }) => number === worker.slot)
    if (worker.state === 'ready' && !worker.orphan && !isHeld(worker))
      assert.ok(own && (own.serving === null || workers[own.serving].state !== 'ready'),
        `worker ${worker.id} goes once it is replaced`)
  }
  for (const { number, serving, release } of slots) {
    if (!rollout && serving !== null)
      assert.equal(workers[serving].release, release, `slot ${number} is served by its own release`)
  }
  if (rollout && ['rolling', 'canary', 'rolling-back'].includes(rollout.state)) {
    const isAtTheJudge = pool.judgements.some((order) => order.isFinal && order.rollout === rollout.id)
    assert.ok(pool.deadlines.has('progress:0') || pool.deadlines.has('canary:0') || isAtTheJudge || pool.hook?.isEnding,
      `a rollout that is ${rollout.state} ends, or is ended`)
    if (rollout.kind === 'deploy' && rollout.state !== 'rolling-back')
      assert.ok(pool.deadlines.has('judge:0'), 'a deploy is judged')
  }
  const surge = rollout ? Math.max(rollout.strategy.surge, rollout.strategy.canary?.workers ?? 0, 1) : recycling ? 1 : 0
  assert.ok(holding <= slots.length + surge,
    `${holding} workers live for ${slots.length} slots with a surge of ${surge}`)
  assertOrphansServeUntilReplaced(pool)
  if (pool.state.options.rollout?.order === 'stop-first') assertAlone(pool)
}

/** No worker that this master has started shares its slot with another one. */
function assertAlone (pool: Simulation) {
  const all = Object.values(pool.state.workers)
  for (const { id, slot, orphan } of all)
    if (!orphan)
      assert.deepEqual(all.filter((each) => each.slot === slot).map((each) => each.id), [id],
        `worker ${id} shares slot ${slot} with nobody`)
}

/** An orphan that served and lives is told to go when its slot has a ready worker, neither before nor later. */
function assertOrphansServeUntilReplaced (pool: Simulation) {
  const { slots, workers, phase } = pool.state
  const isReplaced = (number: number) =>
    slots.some(({ number: own, serving }) => own === number && serving !== null && workers[serving].state === 'ready')
  for (const { id, slot, orphan, state, readyAt } of Object.values(workers)) {
    if (!orphan || readyAt === null) continue
    if (state === 'ready')
      assert.ok(!isReplaced(Number(slot)), `orphan ${id} goes on although slot ${slot} has a ready worker`)
    if (state === 'ready') assert.notEqual(phase, 'running', `orphan ${id} goes on although the cluster is whole`)
  }
}

/** Every orphan that is gone has ended once, every other not yet. */
function assertEndedOnce (pool: Simulation, left: { id: number }[]) {
  const ended = pool.events.filter(({ type }) => type === 'worker.exited').map(({ worker }) => worker)
  for (const { id } of left) assert.notEqual(ended.includes(id), pool.processes.has(id), `orphan ${id} ends once`)
}

/** Everything that is left to happen does, on processes that work. */
function becomeHealthy (pool: Simulation) {
  pool.drift = {}
  for (let round = 0; round < 1000; round++) {
    pool.settle()
    const living = pool.state.slots.length -
      snapshotOf(pool.state).workers.filter(({ state }) => state === 'finished').length
    const isQuiet = !pool.state.rollout && pool.ready() === living &&
      pool.processes.size === living + wantedStandbys(pool)
    if (isQuiet) return
    if (pool.asking !== null) pool.feed({ type: 'rollout-turn-came', rollout: pool.asking })
    if (pool.rollout?.state === 'preparing')
      pool.feed({ type: 'release-prepared', rollout: pool.rollout.id, release: { ...NEW_RELEASE, id: 'r9' } })
    if (pool.hook) pool.endHook()
    if (['paused', 'held'].includes(String(pool.rollout?.state))) happen(pool, 'resume')
    const order = pool.judgements.pop()
    if (order) pool.feed({ type: 'judged', rollout: order.rollout, verdict: verdict(null, order.isFinal) })
    pool.passNextDeadline()
  }
  assert.fail(`not healthy after 1000 rounds: ${JSON.stringify(pool.state)}`)
}

/** Its turn to start comes when another worker is ready or gone. */
function isQueued ({ state }: Simulation) {
  const { hasBeenReady, bootCost, slots, workers } = state
  const [first] = slots.filter(({ finished }) => finished === null)
  if (!hasBeenReady && first)
    return first.retryAt !== null || first.serving !== null || first.candidate !== null ||
      isOccupied(state, first.number)
  return bootCost !== null && Object.values(workers).some(({ state }) => state === 'starting')
}

function wantedStandbys ({ state: { options, standby, release } }: Simulation) {
  return standby.useless?.release === release.id ? 0 : options.standby ?? 0
}

test('whatever happens, every slot is held or waits for its next worker, every worker is watched, and no more live than allowed', () => {
  fc.assert(fc.property(size, orphans, options, past, happenings, (workers, left, configured, start, schedule) => {
    run(simulate({ workers, orphans: left, options: configured, start }), schedule, (pool) => {
      assertConsistent(pool)
      assertEndedOnce(pool, left)
    })
  }), { numRuns: 120 })
})

test('whatever has happened, a cluster whose processes work again becomes whole, and its rollout ends', () => {
  fc.assert(fc.property(size, orphans, options, past, happenings, (workers, left, configured, start, schedule) => {
    const pool = simulate({ workers, orphans: left, options: configured, start })
    run(pool, schedule, () => {})
    becomeHealthy(pool)
    assertConsistent(pool)
    assertEndedOnce(pool, left)
    assert.equal(pool.state.rollout, null)
  }), { numRuns: 75 })
})

test('in a healthy rollout the ready workers never fall below the wanted number', () => {
  const order = fc.array(fc.nat(1000), { maxLength: 200 })
  fc.assert(fc.property(size, fc.constantFrom('deploy', 'restart'), past, order, (workers, kind, start, choices) => {
    const pool = simulate({ workers, start })
    pool.settle()
    happen(pool, kind)
    for (const choice of choices) {
      stepOne(pool, choice)
      assert.ok(pool.ready() >= workers, `${pool.ready()} of ${workers} are ready`)
    }
    becomeHealthy(pool)
    assert.ok(pool.last('rollout.succeeded'))
  }), { numRuns: 150 })
})

test('with stop-first no more slots are without a worker than the surge says, and no two workers of a slot live side by side', () => {
  const order = fc.array(fc.nat(1000), { maxLength: 200 })
  fc.assert(
    fc.property(size, fc.constantFrom('deploy', 'restart', '1 due'), fc.integer({ min: 1, max: 2 }), order,
      (workers, kind, surge, choices) => {
        const pool = simulate({ workers, options: { ...OPTIONS, rollout: { order: 'stop-first', surge } } })
        pool.settle()
        happen(pool, kind)
        for (const choice of choices) {
          stepOne(pool, choice)
          assert.ok(snapshotOf(pool.state).readyWorkers >= workers - surge, `${pool.ready()} of ${workers} are ready`)
          assertConsistent(pool)
        }
        becomeHealthy(pool)
        assert.equal(pool.types().filter((type) => type === 'worker.exited').length, kind === '1 due' ? 1 : workers)
      }),
    { numRuns: 75 }
  )
})

test('while healthy workers take over from orphans, the slots that are served never become fewer', () => {
  const order = fc.array(fc.nat(1000), { maxLength: 200 })
  fc.assert(
    fc.property(size, fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 8 }),
      fc.constantFrom('none', 'restart', 'deploy'), order, (workers, slots, rollout, choices) => {
      const pool = simulate({ workers, orphans: slots.map((slot, n) => orphan({ id: n + 1, slot })) })
      if (rollout !== 'none') happen(pool, rollout)
      let floor = new Set(slots.filter((slot) => slot <= workers)).size
      assert.equal(snapshotOf(pool.state).readyWorkers, floor)
      for (const choice of choices) {
        stepOne(pool, choice)
        const { readyWorkers } = snapshotOf(pool.state)
        assert.ok(readyWorkers >= floor, `${readyWorkers} slots are served, after ${floor}`)
        assertOrphansServeUntilReplaced(pool)
        floor = readyWorkers
      }
      becomeHealthy(pool)
    }),
    { numRuns: 150 }
  )
})

/** One process does what is next for it. */
function stepOne (pool: Simulation, n: number) {
  const { id, isTerminated, isDraining } = [...pool.processes.values()][n % pool.processes.size]
  if (isTerminated) pool.exit(id, { code: 0 })
  else if (isDraining) pool.feed({ type: 'worker-drained', worker: id })
  else if (pool.state.workers[id].state === 'starting') pool.feed({ type: 'worker-ready', worker: id })
}

test('no slot ever runs a release that was not deployed to it', () => {
  fc.assert(fc.property(size, happenings, (workers, schedule) => {
    const pool = simulate({ workers })
    run(pool, schedule, ({ state }) => {
      for (const slot of state.slots) {
        const serving = slot.serving === null ? null : state.workers[slot.serving]
        const isGoingBack = pool.rollout?.state === 'rolling-back'
        if (serving && !isGoingBack) assert.equal(serving.release, slot.release, `slot ${slot.number}`)
      }
    })
  }), { numRuns: 75 })
})

test('a stop ends with no process left, whatever was going on', () => {
  fc.assert(fc.property(size, orphans, options, past, happenings, (workers, left, configured, start, schedule) => {
    const pool = simulate({ workers, orphans: left, options: configured, start })
    run(pool, schedule, () => {})
    pool.feed({ type: 'stop', actor: 'signal' })
    pool.settle()
    assertEndedOnce(pool, left)
    assert.equal(pool.isFinished, true)
    assert.equal(pool.processes.size, 0)
    assert.equal(pool.state.rollout, null)
  }), { numRuns: 150 })
})
