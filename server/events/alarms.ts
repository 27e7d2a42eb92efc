import { FAULTS, isOneOf } from '../causes.ts'
import { noticeKindOf } from './notices.ts'
import type { DeckEvent } from './stream.ts'

export type AlarmKind = 'crash' | 'crash-loop' | 'rollout-failed' | 'rolled-back' | 'master-lost' | 'host-silent'

/** The notifications of the browser; `label`, `about`: in the list to choose from. */
export const ALARMS: Readonly<Record<AlarmKind, { title: string, label: string, about: string }>> = Object.freeze({
  crash: { title: 'Crash', label: 'A crash', about: 'a worker ended unexpectedly' },
  'crash-loop': { title: 'Crash loop', label: 'A crash loop', about: 'a slot keeps crashing' },
  'rollout-failed': { title: 'Rollout failed', label: 'A failed deploy', about: 'or a rollout that is held' },
  'rolled-back': { title: 'Rolled back', label: 'A deploy that was rolled back', about: 'by itself' },
  'master-lost': { title: 'Master lost', label: 'A lost master',
    about: 'it was replaced, or does not answer this page' },
  'host-silent': { title: 'Host silent', label: 'A silent host', about: 'another host of the fleet does not report' }
})

/** The alarms that are no notices. */
const KINDS: Readonly<Record<string, (event: DeckEvent) => AlarmKind | null>> = {
  'worker.exited': ({ cause }) => isOneOf(FAULTS, cause) ? 'crash' : null,
  'worker.crash-looping': () => 'crash-loop',
  'rollout.held': () => 'rollout-failed',
  'fleet.host-silent': () => 'host-silent'
}

export function isAlarmKind (kind: unknown): kind is AlarmKind {
  return typeof kind === 'string' && Object.hasOwn(ALARMS, kind)
}

export function alarmKindOf (event: DeckEvent): AlarmKind | null {
  const kind = Object.hasOwn(KINDS, event.type) ? KINDS[event.type](event) : noticeKindOf(event)
  return isAlarmKind(kind) ? kind : null
}
