import type { RestartPolicy } from './restart-policy.ts'

export type WorkerState = 'starting' | 'standby' | 'ready' | 'unresponsive' | 'draining' | 'stopping' | 'exited'

/** Every move that a worker can make. */
const MOVES: Readonly<Record<WorkerState, readonly WorkerState[]>> = Object.freeze({
  starting: ['standby', 'ready', 'draining', 'exited'],
  standby: ['starting', 'draining', 'stopping', 'exited'],
  ready: ['draining', 'unresponsive', 'exited'],
  unresponsive: ['ready', 'stopping', 'exited'],
  draining: ['stopping', 'exited'],
  stopping: ['exited'],
  exited: []
})

export function canMove (from: WorkerState, to: WorkerState) {
  return MOVES[from].includes(to)
}

const OUTSIDE_SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']

/**
 * Why a worker ended. The master's intent counts first, then what the process tells. `exit`: code and signal are both
 * null where nobody saw it end. Returns a cause of the history.
 */
export function causeOfExit (
  { state, intent, orphan, readyAt, due = null, writesHeap = false }: { state: WorkerState,
    intent: { cause: string } | null, orphan: string | null, readyAt: string | null, due?: { cause: string } | null,
    writesHeap?: boolean },
  { code, signal, error, isOutOfMemory, isAsTold = false }: { code: number | null, signal: string | null,
    error?: unknown, isOutOfMemory?: boolean, isAsTold?: boolean },
  policy: RestartPolicy['policy'] = 'always'
): string {
  if (intent && (isAsTold || writesHeap || !hasFailed({ state, orphan, readyAt }, { code, signal, error })))
    return intent.cause
  if (isOutOfMemory) return 'out-of-memory'
  // A worker that has lost its master and is not taken over in time ends with code 0.
  if (orphan && !code && signal === null && !error) return orphan
  if (signal !== null && OUTSIDE_SIGNALS.includes(signal)) return 'killed'
  if (state !== 'draining' && !error && mayEnd(policy, code)) return 'finished'
  if (intent?.cause === 'boot-failure') return intent.cause
  if (due?.cause === 'app-request' && code === 0 && !error) return due.cause
  return state === 'starting' ? 'boot-failure' : 'crash'
}

/** Tells whether a program may end by itself with this code */
function mayEnd (policy: NonNullable<RestartPolicy['policy']>, code: number | null): boolean {
  return policy === 'never' ? code !== null : policy === 'on-failure' && code === 0
}

/**
 * A worker that ends by an error while it drains loses the requests that it was still answering. An orphan ends itself,
 * by signals in the end. One that was still starting has nothing to answer and may end in any way: Node's first message
 * to a dead master is an EPIPE that nobody catches.
 */
function hasFailed ({ state, orphan, readyAt }: { state: WorkerState, orphan: string | null, readyAt: string | null },
  { code, signal, error }: { code: number | null, signal: string | null, error?: unknown })
{
  if (state !== 'draining' || (orphan && readyAt === null)) return false
  return Boolean(error) || Boolean(code) || (signal !== null && !(orphan && OUTSIDE_SIGNALS.includes(signal)))
}
