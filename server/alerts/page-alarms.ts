import { ALARMS, alarmKindOf, isAlarmKind, type AlarmKind } from '../events/alarms.ts'
import { sentenceOf } from '../events/sentences.ts'
import { crashUrlOf } from '../crashes/page-kinds.ts'
import { firstLine } from '../dashboard/readable-text.ts'
import type { Alarm } from '../../public/live-events.d.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Notices } from '../events/notices.ts'

/** Notifications that a browser shows while nobody looks at the page. */

const MAX_TEXT_CHARS = 200

/** `wish`: from a browser */
export function alarmKindsIn (wish: unknown): AlarmKind[] {
  const { kinds } = Object(wish)
  return Array.isArray(kinds) ? [...new Set(kinds.filter(isAlarmKind))] : []
}

export function toAlarm (event: DeckEvent): Alarm | null {
  const kind = alarmKindOf(event)
  return kind && alarmOf({ kind, id: event.id, text: sentenceOf(event), url: crashUrlOf(event) ?? memberUrlOf(event) })
}

function memberUrlOf ({ type, detail }: Pick<DeckEvent, 'type' | 'detail'>): string | null {
  return type === 'fleet.host-silent' ? `/fleet/members/${encodeURIComponent(String(detail?.member))}` : null
}

/**
 * Lists the alarms that a browser has missed while it was not connected. `after`: the newest event that the browser
 * knows; none from a browser that has just begun to listen.
 * @returns oldest first
 */
export function missedAlarms (notices: Pick<Notices, 'list'>,
  { kinds, after }: { kinds: AlarmKind[], after: unknown }): Alarm[]
{
  if (!Number.isSafeInteger(after)) return []
  return notices.list().flatMap(({ id, kind, message }) =>
    isAlarmKind(kind) && kinds.includes(kind) && id > Number(after) ? [alarmOf({ kind, id, text: message })] : []
  ).reverse()
}

function alarmOf ({ kind, id, text, url }: { kind: AlarmKind, id: number, text: string, url?: string | null }): Alarm {
  return { id, kind, title: ALARMS[kind].title, text: firstLine(text, MAX_TEXT_CHARS), url: url ?? `/history/${id}` }
}
