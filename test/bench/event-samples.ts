import type { DeckEvent } from '../../server/events/stream.ts'

export const START_MS = Date.UTC(2026, 0, 1)

/**
 * One a second, and sometimes one of a kind that is rare.
 * @param total how many there will be: those of the second half are of another release
 */
export function eventAt (id: number, total: number): DeckEvent {
  const types = ['worker.forked', 'worker.online', 'worker.ready', 'worker.draining', 'worker.exited',
    'worker.restarted']
  const type = id % 100_000 === 1
    ? 'master.started'
    : id % 1000 === 7
    ? 'unexpected'
    : id % 50_000 < 20
    ? 'rollout.step'
    : types[id % types.length]
  const exited = type === 'worker.exited'
  const cause = exited ? (id % 250_000 === 4 ? 'hung' : ['crash', 'deploy', 'restart'][Math.floor(id / 6) % 3]) : null
  return { id, at: new Date(START_MS + id * 1000).toISOString(), type, cause, slot: id % 8 + 1,
    worker: Math.floor(id / 6), pid: 1000 + id % 30_000, release: id < total / 2 ? 'r1' : 'r2',
    rollout: type.startsWith('rollout.') ? Math.floor(id / 50_000) + 1 : null, actor: null, code: exited ? 1 : null,
    signal: null, uptimeMs: exited ? id * 7 % 1e7 : null,
    message: id === 40_003
      ? 'the needle in the haystack'
      : `worker ${Math.floor(id / 6)} (slot ${id % 8 + 1}) ${
        exited ? 'exited with code 1: Error: connect ECONNREFUSED 10.0.0.7:5432' : 'moved on'
      }`,
    detail: type === 'unexpected'
      ? { input: 'x'.repeat(12_000) }
      : exited
      ? { errorName: 'Error', stack: 'at handler (/srv/app/app.js:12:3)\n'.repeat(12) }
      : type.startsWith('rollout.')
      ? { id: 1, kind: 'deploy', state: 'rolling' }
      : null }
}
