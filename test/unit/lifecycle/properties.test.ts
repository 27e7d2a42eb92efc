import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { listStandbys } from '../../../server/lifecycle/promotion.ts'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { isOccupied, stopsFirst } from '../../../server/lifecycle/slot.ts'
import { NEW_RELEASE, OPTIONS, orphan, simulate, verdict } from '../../support/simulation.ts'
import type { LifecycleOptions, Worker } from '../../../server/lifecycle/state.ts'
import type { Steering } from '../../../server/config/steering.ts'

type Pool = ReturnType<typeof simulate>

const pick = <T>(list: T[], n: number) => list[n % list.length]

/** Anything that may happen to a cluster at any time; `n` chooses to whom. */
const HAPPENINGS = { ready: (pool, n) => withProcess(pool, n, (worker) => pool.feed({ type: 'worker-ready', worker })),
  held: (pool, n) => withProcess(pool, n, (worker) => pool.feed({ type: 'worker-held', worker })),
  readSlot: (pool, n) =>
    withProcess(pool, n, (worker) =>
      pool.feed({ type: 'worker-read-slot', worker, name: 'NODE_APP_INSTANCE', place: null })),
  active: (pool, n) =>
    withProcess(pool, n, (worker) =>
      pool.feed({ type: 'worker-active', worker, resources: ['Timeout'], isIdle: n % 2 === 0 })),
  listening: (pool, n) =>
    withProcess(pool, n, (worker) =>
      pool.feed({ type: 'worker-listening', worker, url: `http://localhost:${3000 + n % 2}`, isFixed: n % 3 > 0 })),
  holds: (pool, n) =>
    withProcess(pool, n, (worker) =>
      pool.feed({ type: 'worker-holds', worker,
        holds: { requests: n % 4 === 0 ? 1 : 0, transfers: 0, webSockets: n % 3, eventStreams: 0, connections: 0,
          sessions: 0 } })),
  endConnections: (pool, n) =>
    withProcess(pool, n, (worker) => pool.feed({ type: 'end-connections', worker, actor: 'api' })),
  drained: (pool, n) =>
    withProcess(pool, n, (worker) => pool.feed({ type: 'worker-drained', worker, heapBytes: n % 2 * 2 ** 28 })),
  crashing: (pool, n) =>
    withProcess(pool, n, (worker) =>
      pool.feed({ type: 'worker-crashing', worker, errorName: 'Error', errorMessage: 'boom' })),
  crash: (pool, n) => withProcess(pool, n, (worker) => pool.exit(worker, { code: 1 })),
  exit: (pool, n) => withProcess(pool, n, (worker) => pool.exit(worker, { code: 0 })),
  kill: (pool, n) => withProcess(pool, n, (worker) => pool.exit(worker, { signal: 'SIGKILL' })), deadline: (pool) => {
    pool.passNextDeadline()
  }, starved: (pool, n) => {
    pool.passNextDeadline({ starvedMs: n * 30 })
  }, wait: (pool, n) => {
    pool.wait(n * 100)
  }, deploy: (pool) => pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' }),
  restart: (pool) => pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' }),
  restartOne: (pool, n) =>
    withProcess(pool, n, (worker) => pool.feed({ type: 'restart-worker', worker, actor: 'api' })),
  silent: (pool, n) =>
    withProcess(pool, n, (worker) => pool.feed({ type: 'worker-silent', worker, message: 'silent' })),
  answered: (pool, n) => withProcess(pool, n, (worker) => pool.feed({ type: 'worker-answered', worker })),
  captured: (pool, n) => withProcess(pool, n, (worker) => pool.feed({ type: 'stack-captured', worker })),
  due: (pool, n) =>
    withProcess(pool, n,
      (worker) => pool.feed({ type: 'worker-due', worker, cause: 'memory-limit', message: 'large' })),
  killOne: (pool, n) => withProcess(pool, n, (worker) => pool.feed({ type: 'kill-worker', worker, actor: 'api' })),
  deployUnprepared: (pool) =>
    pool.feed({ type: 'rollout', kind: 'deploy', actor: 'api',
      strategy: { surge: 2, minReadyMs: 500, onFailure: 'hold', limits: { crashes: 1 } } }),
  deployCanary: (pool, n) =>
    pool.feed({ type: 'rollout', kind: 'deploy', actor: 'api',
      strategy: { surge: '50%', canary: { workers: 1 + n % 3, durationMs: 1000 },
        onFailure: n % 2 ? 'hold' : 'rollback' } }),
  deployStopFirst: (pool, n) =>
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api',
      strategy: { order: 'stop-first', surge: 1 + n % 2, onFailure: n % 3 ? 'hold' : 'rollback' } }),
  deployInTurn: (pool) => pool.feed({ type: 'rollout', kind: 'deploy', actor: 'api', awaitsTurn: true }),
  restartInTurn: (pool) => pool.feed({ type: 'rollout', kind: 'restart', actor: 'api', awaitsTurn: true }),
  othersFirst: (pool) => pool.feed({ type: 'rollout-waits', rollout: pool.asking ?? 1, apps: ['shop'] }),
  turnCame: (pool) => pool.feed({ type: 'rollout-turn-came', rollout: pool.asking ?? 1 }),
  rollback: (pool, n) =>
    pool.feed({ type: 'rollout', kind: 'rollback', release: pick(Object.values(pool.state.releases), n),
      actor: 'api' }),
  prepared: (pool) =>
    pool.feed({ type: 'release-prepared', rollout: pool.preparing ?? 1, release: { ...NEW_RELEASE, id: 'r9' } }),
  notPrepared: (pool) =>
    pool.feed({ type: 'release-not-prepared', rollout: pool.preparing ?? 1, reason: 'no room on the disk' }),
  preparedWithHook: (pool) =>
    pool.feed({ type: 'release-prepared', rollout: pool.preparing ?? 1, release: { ...NEW_RELEASE, id: 'r9' },
      hasHook: true }),
  hookEnded: (pool, n) => pool.endHook(n % 3 === 0 ? { passed: false, reason: 'beforeDeploy exited with code 1' } : {}),
  pause: (pool) => steer(pool, 'pause'), resume: (pool) => steer(pool, 'resume'), abort: (pool) => steer(pool, 'abort'),
  promote: (pool) => steer(pool, 'promote'), retry: (pool) => steer(pool, 'retry'),
  judged: (pool, n) =>
    pool.feed({ type: 'judged', rollout: pool.state.rollout?.id ?? 1,
      verdict: verdict([true, false, null][n % 3], n % 2 === 0) }),
  scale: (pool, n) => pool.feed({ type: 'scale', workers: 1 + n % 5, actor: 'api' }),
  configure: (pool, n) =>
    pool.feed({ type: 'configure', options: { ...pool.state.options, recycle: { maxAgeMs: n % 2 * n } } }),
  standby (pool, n) {
    const { options } = pool.state
    // The configuration refuses these together.
    if (options.rollout?.order !== 'stop-first' && !options.restart.policy)
      pool.feed({ type: 'configure', options: { ...options, standby: n % 3 } })
  }, edit (pool, n) {
  pool.drift = {
    [pick(Object.keys(pool.state.releases), n)]: { kind: 'code', count: 1, files: ['/srv/app.js'], since: null,
      by: null }
  }
}, restore (pool) {
  pool.drift = {}
} } as Record<string, (pool: Pool, n: number) => void>

function steer (pool: Pool, type: Steering) {
  return pool.feed({ type, rollout: pool.state.rollout?.id ?? 1, actor: 'api' })
}

const options = fc.constantFrom<LifecycleOptions>(OPTIONS, { ...OPTIONS,
  rollout: { order: 'stop-first', guardMs: 300_000 } }, { ...OPTIONS,
  restart: { ...OPTIONS.restart, policy: 'on-failure' } }, { ...OPTIONS,
  rollout: { order: 'stop-first', surge: 2, progressDeadlineMs: 20_000 },
  restart: { ...OPTIONS.restart, policy: 'never' }, releases: { onDrift: 'hold' } }, { ...OPTIONS, standby: 2,
  rollout: { guardMs: 300_000, progressDeadlineMs: 20_000, minReadyMs: 500, limits: { crashes: 1 } },
  releases: { onDrift: 'hold' } })
const happenings = fc.array(
  fc.tuple(fc.constantFrom(...Object.keys(HAPPENINGS), 'ready', 'ready', 'deadline'), fc.nat(1000)),
  { maxLength: 120, size: 'max' }
)
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

function withProcess (pool: Pool, n: number, act: (worker: number) => void) {
  if (pool.processes.size > 0) act(pick([...pool.processes.keys()], n))
}

function run (pool: Pool, schedule: [string, number][], check: (pool: Pool) => void) {
  for (const [name, n] of schedule) {
    HAPPENINGS[name](pool, n)
    check(pool)
  }
}

function assertConsistent (pool: Pool) {
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
function assertAlone (pool: Pool) {
  const all = Object.values(pool.state.workers)
  for (const { id, slot, orphan } of all)
    if (!orphan)
      assert.deepEqual(all.filter((each) => each.slot === slot).map((each) => each.id), [id],
        `worker ${id} shares slot ${slot} with nobody`)
}

/** An orphan that served and lives is told to go when its slot has a ready worker, neither before nor later. */
function assertOrphansServeUntilReplaced (pool: Pool) {
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
function assertEndedOnce (pool: Pool, left: { id: number }[]) {
  const ended = pool.events.filter(({ type }) => type === 'worker.exited').map(({ worker }) => worker)
  assert.equal(new Set(ended).size, ended.length, 'no worker ends twice')
  for (const { id } of left) assert.notEqual(ended.includes(id), pool.processes.has(id), `orphan ${id} ends once`)
}

/** Everything that is left to happen does, on processes that work. */
function becomeHealthy (pool: Pool) {
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
    if (['paused', 'held'].includes(String(pool.rollout?.state))) steer(pool, 'resume')
    const order = pool.judgements.pop()
    if (order) pool.feed({ type: 'judged', rollout: order.rollout, verdict: verdict(null, order.isFinal) })
    pool.passNextDeadline()
  }
  assert.fail(`not healthy after 1000 rounds: ${JSON.stringify(pool.state)}`)
}

/** Its turn to start comes when another worker is ready or gone. */
function isQueued ({ state }: Pool) {
  const { hasBeenReady, bootCost, slots, workers } = state
  const [first] = slots.filter(({ finished }) => finished === null)
  if (!hasBeenReady && first)
    return first.retryAt !== null || first.serving !== null || first.candidate !== null ||
      isOccupied(state, first.number)
  return bootCost !== null && Object.values(workers).some(({ state }) => state === 'starting')
}

function wantedStandbys ({ state: { options, standby, release } }: Pool) {
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
    const started = pool.types().filter((type) => type === 'rollout.started').length
    const ended =
      pool.types().filter((type) => ['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back'].includes(type))
        .length
    assert.equal(ended, started)
  }), { numRuns: 75 })
})

test('in a healthy rollout the ready workers never fall below the wanted number', () => {
  const order = fc.array(fc.nat(1000), { maxLength: 200 })
  fc.assert(fc.property(size, fc.constantFrom('deploy', 'restart'), past, order, (workers, kind, start, choices) => {
    const pool = simulate({ workers, start })
    pool.settle()
    HAPPENINGS[kind](pool, 0)
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
    fc.property(size, fc.constantFrom('deploy', 'restart', 'due'), fc.integer({ min: 1, max: 2 }), order,
      (workers, kind, surge, choices) => {
        const pool = simulate({ workers, options: { ...OPTIONS, rollout: { order: 'stop-first', surge } } })
        pool.settle()
        HAPPENINGS[kind](pool, 0)
        for (const choice of choices) {
          stepOne(pool, choice)
          assert.ok(snapshotOf(pool.state).readyWorkers >= workers - surge, `${pool.ready()} of ${workers} are ready`)
          assertConsistent(pool)
        }
        becomeHealthy(pool)
        assert.equal(pool.types().filter((type) => type === 'worker.exited').length, kind === 'due' ? 1 : workers)
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
      if (rollout !== 'none') HAPPENINGS[rollout](pool, 0)
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
function stepOne (pool: Pool, n: number) {
  withProcess(pool, n, (id) => {
    const process = pool.processes.get(id)
    if (process?.isTerminated) pool.exit(id, { code: 0 })
    else if (process?.isDraining) pool.feed({ type: 'worker-drained', worker: id })
    else if (pool.state.workers[id].state === 'starting') pool.feed({ type: 'worker-ready', worker: id })
  })
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
