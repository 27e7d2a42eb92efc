import { FAULTS, isOneOf } from '../causes.ts'
import { withoutOptions } from '../../public/format.ts'
import { attempt } from '../errors.ts'
import type { History } from '../../db/history.ts'
import type { CrashService } from '../crashes/crashes.ts'
import type { Reason } from '../api/shapes.ts'

/** What the workers of slots have died of last, or a crash that nobody has resolved or muted. */
export type { Reason }
export type Sources = { history: Pick<History, 'page'>, crashes: Pick<CrashService, 'group'> }

/**
 * The open crashes. `open`: how many groups there are; `inRelease`: how many of these have crashed in the release that
 * runs; `isMore`: there are more of them than were counted; `newInRelease`: how many of them have crashed in no release
 * before; `reasons`: the newest ones, new ones first
 */
export type OpenCrashes = { open: number, inRelease: number, isMore: boolean, newInRelease: number, reasons: Reason[] }

/** However many slots there are, a glance costs no more, and shows no more. */
const MAX_SLOTS = 8
const MAX_REASONS = 3
/** So many of a slot's last exits are looked at: planned ones may have come in between. */
const MAX_EXITS = 5
const MAX_CHARS = 240
const MAX_COUNTED = 20

/** @returns equal ones once; none where the history cannot tell */
export function crashReasons (slots: number[], sources: Sources): Reason[] {
  const reasons: Map<string, Reason> = new Map()
  for (const slot of slots.slice(0, MAX_SLOTS)) {
    const reason = attempt(() => lastReason(slot, sources))
    if (!reason) continue
    const key = `${reason.crashGroup} ${reason.crashGroup === null ? reason.text : ''}`
    const known = reasons.get(key)
    if (known) known.slots.push(slot)
    else reasons.set(key, reason)
  }
  return Array.from(reasons.values()).slice(0, MAX_REASONS)
}

function lastReason (slot: number, { history, crashes }: Sources): Reason | null {
  const exit = history.page({ type: 'worker.exited', slot, limit: MAX_EXITS }).items.find(({ cause }) =>
    isOneOf(FAULTS, cause)
  )
  if (!exit) return null
  const { crashGroup = null, hint } = exit.detail ?? {}
  const group = crashGroup === null ? null : attempt(() => crashes.group(crashGroup))
  const why = group ? nameOf(group) : withoutOptions(exit.message ?? String(exit.cause))
  // It is ours, and is shown as a whole.
  const text = hint ? `${toLine(why.replace(`; ${hint}`, ''))}; ${hint}` : toLine(why)
  return { slots: [slot], text, event: exit.id, crashGroup: group ? crashGroup : null,
    isNewInRelease: group?.isNewInRelease ?? false }
}

/** `release`: that runs. Returns null: the database cannot tell. */
export function openCrashes (release: string, { crashes }: { crashes: Pick<CrashService, 'counts' | 'page'> }):
  | OpenCrashes
  | null
{
  return attempt(() => {
    const { open } = crashes.counts()
    if (open === 0) return { open, inRelease: 0, isMore: false, newInRelease: 0, reasons: [] }
    const { items, next } = crashes.page({ state: 'open', release, limit: MAX_COUNTED })
    const fresh = items.filter(({ isNewInRelease }) => isNewInRelease)
    const reasons = [...fresh, ...items.filter((group) => !group.isNewInRelease)].slice(0, MAX_REASONS).map((
      group
    ) => ({ slots: [], text: toLine(nameOf(group)), event: null, crashGroup: group.id,
      isNewInRelease: group.isNewInRelease })
    )
    return { open, inRelease: items.length, isMore: next !== null, newInRelease: fresh.length, reasons }
  })
}

function nameOf (
  { errorName, message, kind, culprit }: { errorName: string | null, message: string | null, kind: string,
    culprit: string | null }
) {
  const [what] = (message ?? '').split('\n', 1)
  return `${[kind === 'hung' ? null : errorName, withoutOptions(what)].filter(Boolean).join(': ') || kind}${
    culprit ? `, in ${culprit}` : ''
  }`
}

function toLine (text: string) {
  const [line] = text.split('\n', 1)
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1)}…` : line
}
