import { DeckError } from '../errors.js'

/** @typedef {ReturnType<typeof createDiagnostics>} Diagnostics */

/**
 * @typedef {'cpu-profile' | 'heap-snapshot' | 'heap-statistics' | 'report'} DiagnosticKind
 * @typedef {{ id: number, kind: DiagnosticKind, worker: number, slot: number, pid: number, release: string, state: 'running' | 'done' | 'failed',
 *   durationMs: number | null, actor: string, startedAt: string, finishedAt: string | null, bytes: number | null, error: string | null, warning: string | null }} Diagnostic
 */

const QUICK_MS = 30_000
const SNAPSHOT_MS = 10 * 60_000
const DEFAULT_PROFILE_MS = 10_000

const WARNINGS = Object.freeze(/** @type {Record<string, string>} */ ({
  'heap-snapshot': 'The worker stops until the snapshot is written and needs about twice its memory; the file holds everything the app has in memory: passwords, keys, personal data.',
  report: 'Environment variables are left out, the command line is not.'
}))

/** What stops the whole process while it is made: no reason to take it for hung. */
const STOPS_WORKER = new Set(['heap-snapshot', 'report'])

/**
 * Looks into one worker when an operator asks for it.
 * @param {object} parts
 * @param {Pick<import('../cluster/supervisor.js').Supervisor, 'snapshot' | 'tell' | 'excuse' | 'onDiagnosed'>} parts.supervisor
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('./store.js').Store} parts.store
 * @param {() => number} [parts.time] wall, ms
 */
export function createDiagnostics ({ supervisor, events, store, time = Date.now }) {
  /** @type {Map<number, { item: Diagnostic, timer: NodeJS.Timeout }>} by worker: one at a time */
  const running = new Map()

  supervisor.onDiagnosed((worker, { id, error }) => {
    if (running.get(worker)?.item.id === id) finishDiagnostic(worker, typeof error === 'string' ? error.slice(0, 500) : null)
  })
  const unsubscribe = events.subscribe(({ type, worker }) => {
    if (type === 'worker.exited' && worker !== null && running.has(worker)) finishDiagnostic(worker, 'the worker ended before it was done')
  })

  return {
    list: store.list,
    /** @param {number} id @returns {Diagnostic | null} */
    get: store.get,

    /** @param {number} id @param {string} actor who gets it @returns {{ file: string, name: string } | null} null: there is none, or not yet */
    file (id, actor) {
      const item = store.get(id)
      if (item?.state !== 'done') return null
      const file = store.fileOf(item)
      publishEvent('diagnostics.downloaded', { ...item, actor }, `diagnostics ${id}: ${item.kind} of worker ${item.worker} (slot ${item.slot})`)
      return { file, name: file.slice(file.lastIndexOf('/') + 1) }
    },

    /**
     * @param {{ worker: number, kind: DiagnosticKind, durationMs?: number, actor: string }} order `durationMs`: of a CPU profile
     * @returns {Diagnostic}
     * @throws {DeckError} not-found, not-possible, diagnostics-running, data-dir-unusable
     */
    start ({ worker: id, kind, durationMs = DEFAULT_PROFILE_MS, actor }) {
      const worker = supervisor.snapshot().workers.find((row) => row.id === id)
      if (!worker || worker.pid === null) throw new DeckError('not-found', `No worker ${id} is alive`)
      if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
      if (worker.state === 'unresponsive') throw new DeckError('not-possible', `worker ${id} is unresponsive`)
      const other = running.get(id)
      if (other) {
        throw new DeckError('diagnostics-running', `worker ${id} is busy with diagnostics ${other.item.id} (${other.item.kind})`, { details: { diagnostics: other.item.id } })
      }
      const { slot, pid, release } = worker
      const isProfile = kind === 'cpu-profile'
      /** @type {Diagnostic} */
      const item = {
        id: store.nextId(), kind, worker: id, slot, pid, release, state: 'running', durationMs: isProfile ? durationMs : null, actor, startedAt: isoTime(), finishedAt: null, bytes: null, error: null, warning: WARNINGS[kind] ?? null
      }
      const file = createFile(item)
      const patienceMs = kind === 'heap-snapshot' ? SNAPSHOT_MS : QUICK_MS + (item.durationMs ?? 0)
      const timer = setTimeout(() => finishDiagnostic(id, `not done within ${patienceMs} ms`), patienceMs).unref()
      running.set(id, { item, timer })
      publishEvent('diagnostics.started', item, `${kind} of worker ${id} (slot ${slot})`)
      if (STOPS_WORKER.has(kind)) supervisor.excuse(id, true)
      supervisor.tell(id, { type: 'diagnose', id: item.id, kind, file, durationMs })
      return item
    },

    /** @param {number} id @param {string} actor @throws {DeckError} not-found, diagnostics-running */
    remove (id, actor) {
      const item = store.get(id)
      if (!item) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
      if (item.state === 'running') throw new DeckError('diagnostics-running', `diagnostics ${id} are still running`)
      store.remove(item)
      publishEvent('diagnostics.deleted', { ...item, actor }, `diagnostics ${id}: ${item.kind} of worker ${item.worker} (slot ${item.slot})`)
    },

    close () {
      unsubscribe()
      for (const { timer } of running.values()) clearTimeout(timer)
    }
  }

  /** @param {Diagnostic} item */
  function createFile (item) {
    try {
      return store.create(item)
    } catch (/** @type {any} */ error) {
      throw new DeckError('data-dir-unusable', `the diagnostics cannot be written (${error.code ?? error.message})`, { cause: error })
    }
  }

  /** @param {number} worker @param {string | null} error */
  function finishDiagnostic (worker, error) {
    const { item, timer } = /** @type {{ item: Diagnostic, timer: NodeJS.Timeout }} */ (running.get(worker))
    running.delete(worker)
    clearTimeout(timer)
    supervisor.excuse(worker, false)
    const bytes = store.sizeOf(item)
    const failure = error ?? (bytes === 0 ? 'the worker has written nothing' : null)
    /** @type {Diagnostic} */
    const ended = { ...item, state: failure === null ? 'done' : 'failed', finishedAt: isoTime(), bytes: failure === null ? bytes : null, error: failure }
    try {
      store.keep(ended)
      store.prune()
    } catch {
      // ENOSPC: it is known in memory, and the event says the rest.
    }
    const what = `${item.kind} of worker ${worker} (slot ${item.slot})`
    if (failure === null) publishEvent('diagnostics.finished', ended, `${what}: ${bytes} bytes`)
    else publishEvent('diagnostics.failed', ended, `${what}: ${failure}`)
  }

  /** @param {string} type @param {Diagnostic} item @param {string} message */
  function publishEvent (type, item, message) {
    const { worker, slot, pid, release, actor } = item
    events.publish({ type, worker, slot, pid, release, actor, message, detail: { ...item } })
  }

  function isoTime () {
    return new Date(time()).toISOString()
  }
}
