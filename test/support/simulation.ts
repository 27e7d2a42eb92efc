import { reduce } from '../../server/lifecycle/pool.ts'
import { snapshotOf } from '../../server/lifecycle/snapshot.ts'
import { createState, type Command, type DeadlineKind, type Drift, type Input, type LifecycleOptions, type Orphan,
  type PlainInput, type Refusal, type Release, type Verdict } from '../../server/lifecycle/state.ts'
import type { Guard } from '../../server/lifecycle/rollout/guard.ts'
import type { Exit } from '../../server/lifecycle/loss.ts'
import type { SeenEvent } from './event-log.ts'

export type Simulation = ReturnType<typeof simulate>

/** by type */
type Commands = { [Each in Command as Each['type']]: Each }
/** A release without an id gets the next one. */
export type Fed = PlainInput extends infer I ?
  I extends { release?: Release } ?
    Omit<I, 'release'> & { release?: Omit<Release, 'id' | 'createdAt'> & Partial<Release> } :
  I :
  never

export const OPTIONS: Readonly<LifecycleOptions> = Object.freeze<LifecycleOptions>({
  ready: { signal: 'auto', timeoutMs: 30_000 },
  drain: { idleGraceMs: 5000, deadlineMs: 30_000, stalledMs: 10_000, longLivedMs: 14_400_000, spreadMs: 30_000,
    maxOldWorkers: 'auto' },
  stop: { termGraceMs: 5000, signal: 'SIGTERM' },
  crash: { graceMs: 1000 },
  restart: { minDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 60_000, intensity: { restarts: 5, windowMs: 60_000 } }
})

/**
 * A cluster without processes: the reducer, a clock, the deadlines that it has set, and the processes that it believes
 * in. Each command and each event is checked against what is possible, so a test that only feeds inputs already proves
 * something: no command is for a worker that is gone, no id is given twice, no deadline outlives its worker, a worker
 * ends once, one rollout runs at a time, and each has one end.
 * `isChecked`: whether it also finds out who changes a state that is not theirs, which takes longer the more workers
 * there are; `from`: when it begins, ms; `judge`: compares the sides of each deploy.
 */
export function simulate (
  { workers = 2, options = OPTIONS, orphans = ([] as Orphan[]), guard = (null as Guard | null),
    start = ({} as Partial<Parameters<typeof createState>[0]>), hasHook = false, awaitsTurn = (null as string | null),
    isChecked = true, from = 1000, judge = (null as ((order: Commands['judge']) => Verdict) | null) } = {}
) {
  let at = from
  let count = 0
  const nextWorker = Math.max(0, ...orphans.map(({ id }) => id)) + 1
  let state = createState({ options, release: { id: 'r1', createdAt: '', entry: '/srv/r1/app.js', path: '/srv/r1' },
    nextWorker, ...start })
  let nextRelease = 2
  const deadlines: Map<string, { deadline: DeadlineKind, id: number, dueAt: number }> = new Map()
  const processes: Map<number,
    { id: number, slot: number | null, release: string, isDraining: boolean, isTerminated: boolean,
      isKilled: boolean }> = new Map()
  const events: SeenEvent[] = []
  const commands: Command[] = []
  /** Every id that was ever given to a worker. */
  const known = new Set(orphans.map(({ id }) => id))
  /** Workers whose end was told. */
  const ended: Set<number> = new Set()
  let isRolling = false
  const judgements: Commands['judge'][] = []
  /** What is fed once all commands of a turn are done. */
  const answers: Fed[] = []
  const effects: { [Type in keyof Commands]: (command: Commands[Type]) => unknown } = {
    fork ({ worker, slot, release }) {
      if (known.has(worker)) throw new Error(`the id ${worker} was given twice`)
      const isHeld = state.options.releases?.onDrift === 'hold' && simulation.drift[release.id]?.kind === 'code'
      if (isHeld && !isRolling) throw new Error(`worker ${worker} is forked on changed files`)
      known.add(worker)
      addProcess(worker, slot, release.id)
    },
    promote: ({ worker, slot }) => note(worker, { slot }),
    drain: ({ worker }) => note(worker, { isDraining: true }),
    'end-connections': ({ worker }) => note(worker, {}),
    'count-as-ready': ({ worker }) => note(worker, {}),
    'write-heap': ({ worker }) => note(worker, {}),
    'capture-stack': ({ worker }) => note(worker, {}),
    terminate: ({ worker }) => note(worker, { isTerminated: true }),
    kill: ({ worker }) => note(worker, { isKilled: true }),
    'set-deadline': ({ deadline, id, ms }) => deadlines.set(`${deadline}:${id}`, { deadline, id, dueAt: at + ms }),
    'clear-deadline': ({ deadline, id }) => deadlines.delete(`${deadline}:${id}`),
    'take-turn' ({ rollout }) {
      simulation.asking = rollout
    },
    'prepare-release' ({ source }) {
      simulation.prepared = source
    },
    'run-hook' ({ rollout, release, from }) {
      if (simulation.hook && !simulation.hook.isEnding) throw new Error('two hooks run side by side')
      simulation.hook = { rollout, release: release.id, from, isEnding: false }
    },
    'end-hook' ({ rollout }) {
      if (simulation.hook?.rollout !== rollout) throw new Error(`no hook of rollout ${rollout} runs`)
      simulation.hook.isEnding = true
    },
    'run-start-hook' () {
      simulation.hook = { rollout: 0, release: state.release.id, from: '', isEnding: false }
    },
    judge (order) {
      judgements.push(order)
      // Of its canary each test says itself how it does.
      if (judge) answers.push({ type: 'judged', rollout: order.rollout, verdict: judge(order) })
      else if (order.isFinal && state.rollout?.stage === 'rolling')
        answers.push({ type: 'judged', rollout: order.rollout, verdict: verdict(null) })
    },
    finish () {
      simulation.isFinished = true
    },
    'close-sockets': nothing,
    'expire-unused-sockets': nothing,
    'close-unused-sockets': nothing,
    'begin-judging': nothing,
    'count-answers': nothing,
    'start-next': nothing,
    'cancel-next': nothing
  }
  const carryOut = <Type extends keyof Commands>(type: Type, command: Commands[Type]) => effects[type](command)

  const simulation = {
    get state () {
      return state
    },
    /** As others see it. */
    get view () {
      return snapshotOf(state)
    },
    get rollout () {
      return snapshotOf(state).rollout
    },
    get at () {
      return at
    },
    /** How many inputs there were. */
    get count () {
      return count
    },
    isFinished: false,
    /** What commands there are. */
    effects: Object.keys(effects),
    /** The rollout that has asked for a turn. */
    asking: null as number | null,
    /** What was to be prepared last. */
    prepared: null as Record<string, unknown> | null,
    hook: null as { rollout: number, release: string, from: string, isEnding: boolean } | null,
    judgements,
    /** Which releases have drifted, by id. */
    drift: {} as Record<string, Drift>,
    events,
    commands,
    processes,
    deadlines,

    /** `input`: a release without an id gets the next one. Returns the refusal, if it was refused. */
    feed (input: Fed): Refusal | null {
      const release =
        'release' in input && typeof input.release === 'object' && input.release && !('id' in input.release)
          ? { release: { createdAt: '', ...input.release, id: `r${nextRelease++}` } }
          : {}
      const stamp = { at, time: at, random: 0.5, drift: simulation.drift }
      const result = reduce(state, { ...stamp, ...input, ...release } as Input)
      if (result.refusal && (result.state !== state || result.events.length + result.commands.length > 0))
        throw new Error('what was refused has changed something')
      // A change of it by the next turn throws.
      state = isChecked ? freeze(result.state) : result.state
      count++
      events.push(...result.events as SeenEvent[])
      commands.push(...result.commands)
      for (const command of result.commands) carryOut(command.type, command)
      for (const event of result.events as SeenEvent[]) takeNoteOf(event)
      for (let answer; (answer = answers.shift());) simulation.feed(answer)
      return result.refusal
    },

    /** Lets time go on to the next deadline, and that pass. `seen`: how long its worker waited for a CPU. */
    passNextDeadline (seen: { starvedMs?: number } = {}) {
      const [next] = [...deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
      if (!next) return false
      at = Math.max(at, next.dueAt)
      deadlines.delete(`${next.deadline}:${next.id}`)
      simulation.feed({ type: 'deadline-passed', deadline: next.deadline, id: next.id, ...seen })
      return true
    },

    wait (ms: number) {
      at += ms
    },

    exit (worker: number, { code = null, signal = null, ...more }: Partial<Exit> = {}) {
      processes.delete(worker)
      return simulation.feed({ type: 'worker-exited', worker, code, signal, ...more })
    },

    /** It listens where the one before it did. */
    becomeReady (worker: number) {
      const { slot } = state.workers[worker]
      if (slot === null) return simulation.feed({ type: 'worker-held', worker })
      for (const { url, isFixed } of state.addresses[slot] ?? [])
        simulation.feed({ type: 'worker-listening', worker, url, isFixed })
      simulation.feed({ type: 'worker-ready', worker })
    },

    endHook (
      { passed = true, reason = null, output = '' }: { passed?: boolean, reason?: string | null, output?: string } = {}
    ) {
      const { rollout } = simulation.hook ?? { rollout: 0 }
      simulation.hook = null
      simulation.feed({ type: 'hook-ended', rollout, passed, reason, output })
    },

    /** What healthy processes do: boot, become ready, drain and exit when told, until nothing is left to do. */
    settle ({ isHealthy = healthy } = {}) {
      for (let moved = true; moved;) {
        moved = false
        for (const process of [...processes.values()]) {
          if (!processes.has(process.id)) continue
          const worker = state.workers[process.id]
          if (process.isKilled || process.isTerminated) simulation.exit(process.id, { code: 0 })
          else if (worker.state === 'unresponsive') simulation.feed({ type: 'stack-captured', worker: process.id })
          else if (process.isDraining) simulation.feed({ type: 'worker-drained', worker: process.id })
          // It drains without having been told: an exception is ending it.
          else if (worker.state === 'draining') simulation.exit(process.id, { code: 1 })
          else if (worker.state === 'starting' && isHealthy(process)) simulation.becomeReady(process.id)
          else if (worker.state === 'starting') simulation.exit(process.id, { code: 1 })
          else continue
          moved = true
        }
      }
    },

    /** @returns ids of what serves, by slot */
    serving: (): number[] => state.slots.map(({ serving }) => serving ?? 0),
    ready: () =>
      state.slots.filter(({ serving }) => serving !== null && state.workers[serving].state === 'ready').length,
    last: (type: string) => events.findLast((event) => event.type === type)!,
    types: () => events.map(({ type }) => type)
  }
  for (const { id, slot, release, exit } of orphans) {
    if (!exit) addProcess(id, slot, release)
  }
  simulation.feed({ type: 'start', workers, orphans, guard, hasHook, awaitsTurn, actor: 'system' })
  return simulation

  function addProcess (id: number, slot: number | null, release: string) {
    processes.set(id, { id, slot, release, isDraining: false, isTerminated: false, isKilled: false })
  }

  function takeNoteOf ({ type, worker }: SeenEvent) {
    const isEnd = ROLLOUT_ENDS.includes(type)
    if (isEnd || type === 'rollout.started') {
      if (isRolling !== isEnd) throw new Error(`${type} while ${isRolling ? 'one' : 'none'} runs`)
      isRolling = !isEnd
    }
    if (type !== 'worker.exited') return
    if (ended.has(worker)) throw new Error(`worker ${worker} ends twice`)
    ended.add(worker)
    for (const { deadline, id } of deadlines.values())
      if (id === worker && !OF_OTHERS.includes(deadline)) throw new Error(`${deadline} of worker ${id} outlives it`)
  }

  function note (worker: number, change: Partial<NonNullable<ReturnType<typeof processes.get>>>) {
    const process = processes.get(worker)
    if (!process) throw new Error(`worker ${worker} is told something after its exit`)
    Object.assign(process, change)
  }
}

function nothing () {}

/** A worker that a dead master has left behind, which serves unless told otherwise. */
export function orphan ({ id, ...fields }: Partial<Orphan> & { id: number }): Orphan {
  return { id, slot: id, pid: 1000 + id, release: 'r1', state: 'ready', startedAt: new Date(0).toISOString(),
    readyAt: new Date(500).toISOString(), intent: null, exit: null, orphan: 'master-lost', ...fields }
}

const ROLLOUT_ENDS = ['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back']
/** Deadlines whose id is of no worker. */
const OF_OTHERS: DeadlineKind[] = ['retry', 'upgrade', 'recycle', 'recycle-pace', 'progress', 'canary', 'judge',
  'guard', 'standby', 'answers']
export const DEADLINES: DeadlineKind[] = [...OF_OTHERS, 'ready', 'addresses', 'alive', 'drain', 'long-lived', 'term',
  'steady', 'stack', 'age', 'soak']
export const NEW_RELEASE = Object.freeze({ entry: '/srv/r2/app.js', path: '/srv/r2' })

/** What a judge may say. */
export function verdict (passed: boolean | null, isFinal: boolean = true) {
  const figures = { workers: 1, requests: 100, errorRate: 0, p99Ms: 1 }
  return { at: new Date(0).toISOString(), passed, isFinal, message: `passed: ${passed}`, canary: figures,
    baseline: figures }
}

function healthy (_process: { release: string }): boolean {
  return true
}

/** `value`: plain data. Returns the same, frozen with all that is in it. */
function freeze<T extends object> (value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) freeze(part)
  return Object.freeze(value)
}
