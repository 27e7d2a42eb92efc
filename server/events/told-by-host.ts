import type { DeckEvent } from './stream.ts'

/** No room, or nothing can be written at all: whatever else is on that disk has the same trouble. */
const FULL_DISK = /\b(?:SQLITE_FULL|SQLITE_IOERR\w*|ENOSPC|EDQUOT|EROFS)\b/

const KINDS: Readonly<Record<string, (event: DeckEvent) => boolean>> = Object.freeze({
  'master.stopped': ({ cause, detail }) => cause === 'master-lost' && detail?.isOfApp !== true,
  'master.upgrade-failed': () => true,
  'fleet.host-silent': () => true,
  'history.degraded': ({ message }) => isOfFullDisk(message)
})

/**
 * Whether an event of an app of a host is of the whole host: each app has it in its own history, but only the host
 * gives a notice of it, and alerts people.
 */
export function isToldByHost (event: DeckEvent): boolean {
  return Object.hasOwn(KINDS, event.type) && KINDS[event.type](event)
}

/** `problem`: why a history cannot be written */
export function isOfFullDisk (problem: string | null): boolean {
  return problem !== null && FULL_DISK.test(problem)
}
