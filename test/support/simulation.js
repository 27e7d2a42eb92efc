import { reduce } from '../../server/lifecycle/pool.js'
import { snapshotOf } from '../../server/lifecycle/snapshot.js'
import { createState } from '../../server/lifecycle/state.js'

export const OPTIONS = Object.freeze({
  ready: { signal: /** @type {const} */ ('auto'), timeoutMs: 30_000 },
  drain: { idleGraceMs: 5000, deadlineMs: 30_000, stalledMs: 10_000, longLivedMs: 14_400_000, spreadMs: 30_000, maxOldWorkers: /** @type {const} */ ('auto') },
  stop: { termGraceMs: 5000, signal: /** @type {const} */ ('SIGTERM') },
  crash: { graceMs: 1000 },
  restart: { minDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 60_000, intensity: { restarts: 5, windowMs: 60_000 } }
})

/**
 * A cluster without processes: the reducer, a clock, the deadlines that it has set, and the processes that it believes in.
 * Every command is checked against what is possible, so a test that only feeds inputs already proves something.
 * `isChecked`: whether it also finds out who changes a state that is not theirs, which takes longer the more workers there are.
 */
export function simulate ({ workers = 2, options = /** @type {import('../../server/lifecycle/state.js').LifecycleOptions} */ (OPTIONS), orphans = /** @type {import('../../server/lifecycle/state.js').Orphan[]} */ ([]), guard = /** @type {import('../../server/lifecycle/rollout/guard.js').Guard | null} */ (null), start = /** @type {Partial<Parameters<typeof createState>[0]>} */ ({}), hasHook = false, awaitsTurn = /** @type {string | null} */ (null), isChecked = true } = {}) {
  let at = 1000
  let count = 0
  const nextWorker = Math.max(0, ...orphans.map(({ id }) => id)) + 1
  let state = createState({ options, release: { id: 'r1', createdAt: '', entry: '/srv/r1/app.js', path: '/srv/r1' }, nextWorker, ...start })
  let nextRelease = 2
  /** @type {Map<string, { deadline: any, id: number, dueAt: number }>} */
  const deadlines = new Map()
  /** @type {Map<number, { id: number, slot: number | null, release: string, isDraining: boolean, isTerminated: boolean, isKilled: boolean, isStuck: boolean, isTold?: number, writesHeap?: boolean }>} */
  const processes = new Map()
  /** @type {any[]} */
  const events = []
  /** Every id that was ever given to a worker. */
  const known = new Set(orphans.map(({ id }) => id))
  /** @type {any[]} */
  const judgements = []
  /** @type {number | null} */
  let preparing = null
  /** The rollout that has asked for a turn. @type {number | null} */
  let asking = null
  /** What was to be prepared last. @type {any} */
  let prepared = null
  let isFinished = false
  let socketsClosed = false
  let hook = /** @type {{ rollout: number, release: string, from: string, isEnding: boolean } | null} */ (null)
  /** @type {'starting' | 'cancelled' | null} */
  let nextMaster = null

  const effects = /** @type {Record<string, (command: any) => void>} */ ({
    fork ({ worker, slot, release }) {
      if (known.has(worker)) throw new Error(`the id ${worker} was given twice`)
      known.add(worker)
      addProcess(worker, slot, release.id)
    },
    promote: ({ worker, slot }) => { find(worker).slot = slot },
    drain: ({ worker }) => { find(worker).isDraining = true },
    'end-connections': ({ worker, isLast }) => { find(worker).isTold = isLast ? 1001 : 1012 },
    'count-as-ready': ({ worker }) => { find(worker) },
    'write-heap': ({ worker }) => { find(worker).writesHeap = true },
    terminate: ({ worker }) => { find(worker).isTerminated = true },
    kill: ({ worker }) => { find(worker).isKilled = true },
    'set-deadline': ({ deadline, id, ms }) => { deadlines.set(`${deadline}:${id}`, { deadline, id, dueAt: at + ms }) },
    'clear-deadline': ({ deadline, id }) => { deadlines.delete(`${deadline}:${id}`) },
    'capture-stack': ({ worker }) => { find(worker).isStuck = true },
    'close-sockets': () => { socketsClosed = true },
    'expire-unused-sockets': () => {},
    'close-unused-sockets': () => {},
    'take-turn' ({ rollout }) { asking = rollout },
    'prepare-release' ({ rollout, source }) {
      preparing = rollout
      prepared = source
    },
    'run-hook' ({ rollout, release, from }) {
      if (hook && !hook.isEnding) throw new Error('two hooks run side by side')
      hook = { rollout, release: release.id, from, isEnding: false }
    },
    'end-hook' ({ rollout }) {
      if (!hook || hook.rollout !== rollout) throw new Error(`no hook of rollout ${rollout} runs`)
      hook = { ...hook, isEnding: true }
    },
    'run-start-hook': () => { hook = { rollout: 0, release: state.release.id, from: '', isEnding: false } },
    'begin-judging': () => {},
    judge: (order) => { judgements.push(order) },
    'start-next': () => { nextMaster = 'starting' },
    'cancel-next': () => { nextMaster = 'cancelled' },
    finish: () => { isFinished = true }
  })

  const simulation = {
    get state () { return state },
    /** As others see it. */
    get rollout () { return snapshotOf(state).rollout },
    get at () { return at },
    /** How many inputs there were. */
    get count () { return count },
    get isFinished () { return isFinished },
    get socketsClosed () { return socketsClosed },
    get nextMaster () { return nextMaster },
    get preparing () { return preparing },
    get asking () { return asking },
    get prepared () { return prepared },
    get hook () { return hook },
    judgements,
    /** Which releases have drifted, by id. @type {Record<string, import('../../server/lifecycle/state.js').Drift>} */
    drift: {},
    events,
    processes,
    deadlines,

    /** @param {any} input a release without an id gets the next one @returns {any} the refusal, if it was refused */
    feed (input) {
      const release = input.release && !input.release.id ? { release: { createdAt: '', ...input.release, id: `r${nextRelease++}` } } : {}
      const result = reduce(state, { at, time: at, random: 0.5, drift: simulation.drift, ...input, ...release })
      // A change of it by the next turn throws.
      state = isChecked ? freeze(result.state) : result.state
      count++
      events.push(...result.events)
      for (const command of result.commands) effects[command.type](command)
      return result.refusal
    },

    /** Lets time go on to the next deadline, and that pass. @param {{ starvedMs?: number }} [seen] how long its worker waited for a CPU */
    passNextDeadline (seen = {}) {
      const [next] = [...deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
      if (!next) return false
      at = Math.max(at, next.dueAt)
      deadlines.delete(`${next.deadline}:${next.id}`)
      simulation.feed({ type: 'deadline-passed', deadline: next.deadline, id: next.id, ...seen })
      return true
    },

    /** @param {number} ms */
    wait (ms) { at += ms },

    /** @param {number} worker @param {Partial<import('../../server/lifecycle/loss.js').Exit>} [exit] */
    exit (worker, { code = null, signal = null, ...more } = {}) {
      processes.delete(worker)
      return simulation.feed({ type: 'worker-exited', worker, code, signal, ...more })
    },

    /** It listens where the one before it did. @param {number} worker */
    becomeReady (worker) {
      const { slot } = state.workers[worker]
      if (slot === null) return simulation.feed({ type: 'worker-held', worker })
      for (const { url, isFixed } of state.addresses[slot] ?? []) simulation.feed({ type: 'worker-listening', worker, url, isFixed })
      simulation.feed({ type: 'worker-ready', worker })
    },

    /** @param {{ passed?: boolean, reason?: string | null, output?: string }} [how] */
    endHook ({ passed = true, reason = null, output = '' } = {}) {
      const { rollout } = hook ?? { rollout: 0 }
      hook = null
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

    /** @returns {number[]} ids of what serves, by slot */
    serving: () => state.slots.map(({ serving }) => serving ?? 0),
    ready: () => state.slots.filter(({ serving }) => serving !== null && state.workers[serving].state === 'ready').length,
    /** @param {string} type */
    last: (type) => events.findLast((event) => event.type === type),
    types: () => events.map(({ type }) => type)
  }
  for (const { id, slot, release, exit } of orphans) {
    if (!exit) addProcess(id, slot, release)
  }
  simulation.feed({ type: 'start', workers, orphans, guard, hasHook, awaitsTurn, actor: 'system' })
  return simulation

  function addProcess (/** @type {number} */ id, /** @type {number | null} */ slot, /** @type {string} */ release) {
    processes.set(id, { id, slot, release, isDraining: false, isTerminated: false, isKilled: false, isStuck: false })
  }

  function find (/** @type {number} */ worker) {
    const process = processes.get(worker)
    if (!process) throw new Error(`worker ${worker} is told something after its exit`)
    return process
  }
}

/**
 * A worker that a dead master has left behind, which serves unless told otherwise.
 * @param {Partial<import('../../server/lifecycle/state.js').Orphan> & { id: number }} fields
 * @returns {import('../../server/lifecycle/state.js').Orphan}
 */
export function orphan ({ id, ...fields }) {
  return { id, slot: id, pid: 1000 + id, release: 'r1', state: 'ready', startedAt: new Date(0).toISOString(), readyAt: new Date(500).toISOString(), intent: null, exit: null, orphan: 'master-lost', ...fields }
}

export const NEW_RELEASE = Object.freeze({ entry: '/srv/r2/app.js', path: '/srv/r2' })

/** What a judge may say. @param {boolean | null} passed @param {boolean} [isFinal] */
export function verdict (passed, isFinal = true) {
  const figures = { workers: 1, requests: 100, errorRate: 0, p99Ms: 1 }
  return { at: new Date(0).toISOString(), passed, isFinal, message: `passed: ${passed}`, canary: figures, baseline: figures }
}

/** @param {{ release: string }} _process @returns {boolean} */
function healthy (_process) {
  return true
}

/** @template {object} T @param {T} value plain data @returns {T} the same, frozen with all that is in it */
function freeze (value) {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) freeze(part)
  return Object.freeze(value)
}
