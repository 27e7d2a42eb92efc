import { fake, type Parts } from './fake.ts'
import type { Status, WorkerRow } from '../../server/deck.ts'
import type { DeckEvent, NewEvent } from '../../server/events/stream.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'

/** What a deck without processes tells, for models of pages: one maker for each noun. All is at this time, or before. */
export const NOW = Date.parse('2026-01-02T03:04:05.678Z')

export function anEvent (fields?: Partial<NewEvent> & { id?: number, at?: string }): DeckEvent {
  return { id: 1, at: '2026-01-02T03:04:00.000Z', type: 'worker.exited', cause: null, slot: 1, worker: 7, pid: null,
    release: null, rollout: null, actor: null, code: null, signal: null, uptimeMs: null, message: null, detail: null,
    ...fields } as DeckEvent
}

/** A worker with the number of its slot, and a pid to match. */
export function aWorker ({ slot = 1, ...fields }: Parts<WorkerRow> = {}): WorkerRow {
  return fake<WorkerRow>({ id: slot, slot, pid: 4000 + slot, state: 'ready', release: 'r1',
    startedAt: '2026-01-01T00:00:00.000Z', readyAt: '2026-01-01T00:00:00.300Z', restarts: 0, crashLooping: false,
    orphan: false, drifted: false, retryAt: null, finished: null, vitals: null, ...fields })
}

/** Two workers that are ready, unless somebody says otherwise. */
export function aStatus ({ workers = [aWorker(), aWorker({ slot: 2 })], ...fields }: Parts<Status> = {}): Status {
  return fake<Status>({ state: 'running',
    master: { pid: 1, version: '0.1.0', nodeVersion: 'v20', startedAt: '2026-01-01T00:00:00.000Z', rssBytes: 1,
      isShared: false }, app: { name: 'shop', entry: '/app.js', cwd: '/', addresses: [] }, dispatch: 'shared',
    stickyBy: null, isEven: true, limits: { memoryBytes: 0, cpus: 0, problem: null }, desiredWorkers: 2,
    readyWorkers: new Set(workers.filter(({ state }) => state === 'ready').map(({ slot }) => slot)).size,
    finishedWorkers: 0, release: { id: 'r1', createdAt: '2026-01-01T00:00:00.000Z' }, rollout: null, upgrade: null,
    history: { problem: null }, standby: { wanted: 0, ready: 0, problem: null, workers: [] }, workers, ...fields })
}

/** A deploy that runs. */
export function aRollout (fields?: Parts<RolloutView>): RolloutView {
  return fake<RolloutView>({ id: 3, kind: 'deploy', state: 'rolling', from: 'r1', to: 'r2', actor: 'cli', note: null,
    startedAt: '2026-01-02T03:04:00.000Z', finishedAt: null, done: false, reason: null,
    progress: { total: 2, replaced: 1 }, steps: [], ...fields })
}
