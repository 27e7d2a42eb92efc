import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'
import type { Limits } from '../../server/api/shapes.ts'
import type { Comparison, Moment } from '../../server/lifecycle/state.ts'

/** A deploy of which everything was kept: it was paused on trial, judged, and rolled back as its third worker died. */

const START_MS = Date.parse('2026-01-02T03:00:00.000Z')

/** `seconds`: since it began */
export const after = (seconds: number) => new Date(START_MS + seconds * 1000).toISOString()

const figures = (requests: number, errorRate: number | null, p99Ms: number | null) => ({ workers: 1, requests,
  errorRate, p99Ms })
const NEVER = Object.freeze({ startedAt: null, readyAt: null, promotedAt: null, drainedAt: null, revertingAt: null,
  finishedAt: null })

type KeptRollout = RolloutView & { comparison: Comparison, comparisons: Comparison[], timeline: Moment[] }

/** @returns as the history keeps it */
export function rolledBackDeploy (changes: Partial<RolloutView> = {}): KeptRollout {
  const limits = { crashes: 0, errorRate: 0.05, p99Ratio: 3, minRequests: 50 } as Limits
  const comparisons = [6, 11, 16, 21, 26, 31].map((second, index) => ({ at: after(second),
    canary: figures(100 * index, index === 0 ? null : 0.001 * index, index === 0 ? null : 10 + index),
    baseline: figures(400 + 400 * index, 0.002, 12.5) })
  )
  const passed = 'the new workers do as well as the old ones: 0.5% of 500 responses are 5xx (old: 0.2%)'
  const reason = 'worker 7 (slot 3) exited with code 1: <script>alert(1)</script>\u202E'
  return { id: 7, kind: 'deploy', state: 'rolled-back', pausedIn: null, done: true, from: 'r1', to: 'r2', actor: 'ada',
    client: 'cli', note: 'faster <b>totals</b>', abortedBy: null,
    strategy: { surge: 1, minReadyMs: 0, canary: { workers: 1, durationMs: 30_000 }, limits,
      progressDeadlineMs: 600_000, onFailure: 'rollback' }, crashes: 1,
    verdicts: [{ at: after(31.3), passed: true, isFinal: true, message: passed, canary: comparisons[5].canary,
      baseline: comparisons[5].baseline }], comparison: comparisons[5], comparisons,
    timeline: [{ at: after(0), type: 'rollout.started', actor: 'ada', message: 'faster <b>totals</b>', passed: null }, {
      at: after(1.3),
      type: 'rollout.step',
      actor: null,
      message: 'canary of 1 of 4 slots for 30 s',
      passed: null
    }, { at: after(12), type: 'rollout.paused', actor: 'grace', message: 'paused by grace', passed: null }, {
      at: after(21),
      type: 'rollout.resumed',
      actor: 'grace',
      message: 'resumed by grace',
      passed: null
    }, { at: after(31.3), type: 'rollout.judged', actor: null, message: passed, passed: true }, { at: after(47),
      type: 'rollout.rolling-back', actor: null, message: reason, passed: null }, { at: after(52),
      type: 'rollout.rolled-back', actor: null, message: reason, passed: null }], canaryEndsAt: null, pausedAt: null,
    startedAt: after(0), finishedAt: after(52), reason, warnings: [], progress: { total: 4, replaced: 0 },
    steps: [{ slot: 1, state: 'reverted', oldWorker: 5, newWorker: 8, from: 'r1', isCanary: true, startedAt: after(0.4),
      readyAt: after(1.3), promotedAt: after(31.3), drainedAt: after(32.8), revertingAt: after(47),
      finishedAt: after(49) }, { slot: 2, state: 'reverted', oldWorker: 6, newWorker: 9, from: 'r1', isCanary: false,
      startedAt: after(31.4), readyAt: after(32.3), promotedAt: after(32.3), drainedAt: after(36),
      revertingAt: after(47), finishedAt: after(52) }, { slot: 3, state: 'failed', oldWorker: 3, newWorker: 7,
      from: 'r1', isCanary: false, ...NEVER, startedAt: after(33), finishedAt: after(47) }, { slot: 4, state: 'pending',
      oldWorker: null, newWorker: null, from: 'r1', isCanary: false, ...NEVER }], ...changes } as KeptRollout
}
