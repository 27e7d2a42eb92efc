import { ALARMS, alarmKindOf, isAlarmKind } from '../events/alarms.js'
import { sentenceOf } from '../events/sentences.js'
import { crashUrlOf } from './crash-kinds.js'
import { firstLine } from './readable-text.js'

/**
 * Notifications that a browser shows while nobody looks at the page.
 * @typedef {import('../events/alarms.js').AlarmKind} AlarmKind
 * @typedef {import('../../public/live-events.d.ts').Alarm} Alarm
 */

const MAX_TEXT_CHARS = 200

/** @param {unknown} wish from a browser @returns {AlarmKind[]} */
export function alarmKindsIn (wish) {
  const { kinds } = Object(wish)
  return Array.isArray(kinds) ? [...new Set(kinds.filter(isAlarmKind))] : []
}

/** @param {import('../events/stream.js').DeckEvent} event @returns {Alarm | null} */
export function toAlarm (event) {
  const kind = alarmKindOf(event)
  return kind && alarmOf({ kind, id: event.id, text: sentenceOf(event), url: crashUrlOf(event) ?? memberUrlOf(event) })
}

/** @param {Pick<import('../events/stream.js').DeckEvent, 'type' | 'detail'>} event @returns {string | null} the page of the host that it is about */
function memberUrlOf ({ type, detail }) {
  return type === 'fleet.host-silent' ? `/fleet/members/${encodeURIComponent(detail?.member)}` : null
}

/**
 * Lists the alarms that a browser has missed while it was not connected.
 * @param {Pick<import('../events/notices.js').Notices, 'list'>} notices
 * @param {{ kinds: AlarmKind[], after: unknown }} wish  `after`: the newest event that the browser knows; none from a browser that has just begun to listen
 * @returns {Alarm[]} oldest first
 */
export function missedAlarms (notices, { kinds, after }) {
  if (!Number.isSafeInteger(after)) return []
  return notices.list()
    .flatMap(({ id, kind, message }) => isAlarmKind(kind) && kinds.includes(kind) && id > Number(after) ? [alarmOf({ kind, id, text: message })] : [])
    .reverse()
}

/** @param {{ kind: AlarmKind, id: number, text: string, url?: string | null }} parts @returns {Alarm} */
function alarmOf ({ kind, id, text, url }) {
  return { id, kind, title: ALARMS[kind].title, text: firstLine(text, MAX_TEXT_CHARS), url: url ?? `/history/${id}` }
}
