import { readFile, stat } from 'node:fs/promises'
import { DeckError, errorCode, errorText } from '../errors.ts'
import { writeJson } from '../system/json-file.ts'
import { withOriginalPlaces, type Places } from './original-places.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { EventStream } from '../events/stream.ts'
import type { Store } from './store.ts'
import type { Diagnostic } from '../api/shapes.ts'

export type Diagnostics = ReturnType<typeof createDiagnostics>

export type { Diagnostic }

const QUICK_MS = 30_000
const SNAPSHOT_MS = 10 * 60_000
const DEFAULT_PROFILE_MS = 10_000

const WARNINGS: Readonly<Partial<Record<Diagnostic['kind'], string>>> = Object.freeze({
  'heap-snapshot': 'The worker stops until the snapshot is written and needs about twice its memory. ' +
    'The file holds everything the app has in memory: passwords, keys, personal data.',
  report: 'Environment variables are left out, the command line is not.'
})

/** These stop the whole process, so the watchdog must not take the worker for hung. */
const STOPS_WORKER = new Set(['heap-snapshot', 'report'])

/** A larger one would block the loop of the master for long. */
const MAX_BYTES = 16 * 1024 * 1024

export function createDiagnostics ({ supervisor, events, store, folderOf, places, time = Date.now }: {
  supervisor: Pick<Supervisor, 'snapshot' | 'tell' | 'excuse' | 'onDiagnosed'>,
  events: EventStream,
  store: Store,
  /** where the code of a release is; null: it is no longer known */
  folderOf: (release: string) => string | null,
  /** of the sources */
  places: Places,
  /** wall, ms */
  time?: () => number
}) {
  /** by worker: one at a time */
  const running: Map<number, { item: Diagnostic, timer: NodeJS.Timeout }> = new Map()

  supervisor.onDiagnosed((worker, { id, error }) => {
    if (running.get(worker)?.item.id === id)
      finishDiagnostic(worker, typeof error === 'string' ? error.slice(0, 500) : null)
  })
  const unsubscribe = events.subscribe(({ type, worker }) => {
    if (type === 'worker.exited' && worker !== null && running.has(worker))
      finishDiagnostic(worker, 'the worker ended before it was done')
  })

  return {
    list: store.list,
    get: store.get,

    /** Null: there is none, or not yet */
    file (id: number, actor: string): { file: string, name: string } | null {
      const item = store.get(id)
      if (item?.state !== 'done') return null
      const file = store.fileOf(item)
      // The page reads a CPU profile to list its functions, and their names of functions are no secret.
      if (item.kind !== 'cpu-profile')
        publishEvent('diagnostics.downloaded', { ...item, actor },
          `diagnostics ${id}: ${item.kind} of worker ${item.worker} (slot ${item.slot})`)
      return { file, name: file.slice(file.lastIndexOf('/') + 1) }
    },

    /**
     * `durationMs`: of a CPU profile.
     * @throws {DeckError} not-found, not-possible, diagnostics-running, data-dir-unusable
     */
    start (
      { worker: id, kind, durationMs = DEFAULT_PROFILE_MS, actor }: { worker: number, kind: Diagnostic['kind'],
        durationMs?: number, actor: string }
    ): Diagnostic {
      const worker = supervisor.snapshot().workers.find((row) => row.id === id)
      if (!worker || worker.pid === null) throw new DeckError('not-found', `No worker ${id} is alive`)
      if (worker.runtime === 'other')
        throw new DeckError('not-possible', `worker ${id} is no Node.js process, so clusterdeck cannot take a ${kind}`)
      if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
      if (worker.state === 'unresponsive') throw new DeckError('not-possible', `worker ${id} is unresponsive`)
      const other = running.get(id)
      if (other) {
        const details = { diagnostics: other.item.id }
        throw new DeckError('diagnostics-running',
          `worker ${id} is busy with diagnostics ${other.item.id} (${other.item.kind})`, { details })
      }
      const { slot, pid, release } = worker
      const item: Diagnostic = { id: store.nextId(), kind, worker: id, slot, pid, release, state: 'running',
        durationMs: kind === 'cpu-profile' ? durationMs : null, actor, startedAt: isoTime(), finishedAt: null,
        bytes: null, error: null, warning: WARNINGS[kind] ?? null }
      const file = createFile(item)
      const patienceMs = kind === 'heap-snapshot' ? SNAPSHOT_MS : QUICK_MS + (item.durationMs ?? 0)
      const timer = setTimeout(() => finishDiagnostic(id, `not done within ${patienceMs / 1000} s`), patienceMs).unref()
      running.set(id, { item, timer })
      publishEvent('diagnostics.started', item, `${kind} of worker ${id} (slot ${slot})`)
      if (STOPS_WORKER.has(kind)) supervisor.excuse(id, true)
      supervisor.tell(id, { type: 'diagnose', id: item.id, kind, file, durationMs })
      return item
    },

    /** @throws {DeckError} not-found, diagnostics-running */
    remove (id: number, actor: string) {
      const item = store.get(id)
      if (!item) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
      if (item.state === 'running') throw new DeckError('diagnostics-running', `diagnostics ${id} are still running`)
      store.remove(item)
      publishEvent('diagnostics.deleted', { ...item, actor },
        `diagnostics ${id}: ${item.kind} of worker ${item.worker} (slot ${item.slot})`)
    },

    close () {
      unsubscribe()
      for (const { timer } of running.values()) clearTimeout(timer)
    }
  }

  function createFile (item: Diagnostic) {
    try {
      return store.create(item)
    } catch (error) {
      throw new DeckError('data-dir-unusable',
        `the diagnostics cannot be written (${errorCode(error) ?? errorText(error)})`, { cause: error })
    }
  }

  async function finishDiagnostic (worker: number, error: string | null) {
    const run = running.get(worker)
    if (!run) return
    const { item, timer } = run
    running.delete(worker)
    clearTimeout(timer)
    supervisor.excuse(worker, false)
    const root = item.kind === 'cpu-profile' && error === null ? folderOf(item.release) : null
    if (root !== null) await putOriginalPlaces(store.fileOf(item), root, places)
    const bytes = store.sizeOf(item)
    const failure = error ?? (bytes === 0 ? 'the worker has written nothing' : null)
    const ended: Diagnostic = { ...item, state: failure === null ? 'done' : 'failed', finishedAt: isoTime(),
      bytes: failure === null ? bytes : null, error: failure }
    try {
      store.keep(ended)
      store.prune()
    } catch {
      // ENOSPC: it is still in memory, and in the event.
    }
    const what = `${item.kind} of worker ${worker} (slot ${item.slot})`
    if (failure === null) publishEvent('diagnostics.finished', ended, `${what}: ${bytes} bytes`)
    else publishEvent('diagnostics.failed', ended, `${what}: ${failure}`)
  }

  function publishEvent (type: string, item: Diagnostic, message: string) {
    const { worker, slot, pid, release, actor } = item
    events.publish({ type, worker, slot, pid, release, actor, message, detail: { ...item } })
  }

  function isoTime () {
    return new Date(time()).toISOString()
  }
}

/**
 * Puts the places of sources into the file of a CPU profile that has just been taken. One that is too large, or not
 * whole, stays as the worker has written it. `root`: the folder of its release.
 */
async function putOriginalPlaces (file: string, root: string, places: Places) {
  try {
    if ((await stat(file)).size > MAX_BYTES) return
    const profile = JSON.parse(await readFile(file, 'utf8'))
    const original = withOriginalPlaces(profile, root, places)
    if (original !== profile) writeJson(file, original)
  } catch {
    // Nothing in it is believed; ENOSPC: there is no room for both.
  }
}
