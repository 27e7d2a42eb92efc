import type { Status } from '../api/cluster.ts'

/** An app that another one depends on, and that is not ready. */
export type Needed = {
  name: string,
  /** `left`: it goes on, and nobody follows it */
  state: 'starting' | 'waiting' | 'ready' | 'failed' | 'stopped' | 'not started' | 'left',
  reason: string | null,
  /** when it was last asked */
  status: Status | null
}

/** @returns why the app that depends on it is not started */
export function whyMissing ({ name, state, reason, status }: Needed): string {
  const because = reason === null ? '' : ` (${reason})`
  if (state === 'failed') return `it depends on ${name}, which failed${because}`
  if (state === 'stopped') return `it depends on ${name}, which was stopped${because}`
  if (state === 'not started' || state === 'waiting') return `it depends on ${name}, which was not started`
  return `it depends on ${name}, which is not ready (${whyNotReady(status)})`
}

/** `status`: of an app that starts; `otherwise`: where the status says nothing */
export function whyNotReady (status: Status | null, otherwise: string = 'its workers are not started yet'): string {
  return status?.health ? `${status.health.text}. ${status.health.hint}`.replace(/[.\s]+$/, '') : otherwise
}
