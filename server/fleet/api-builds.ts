import { goesBack } from './progress.ts'
import { isUnderWay, owesReturn, STATES, type FleetRollout } from './document.ts'
import type { Member } from './presence.ts'
import type { Tone } from '../events/kinds.ts'

/**
 * Finds the members of a fleet that run other code than the rest, and those that a running rollout changes. Each deck
 * numbers its own releases, so the commit is compared, or else the version of the package. If both are equal, the turns
 * in the last rollout decide.
 */
type Code = NonNullable<Member['code']>
export type Mark = { label: 'Behind' | 'Ahead' | 'Other code' | 'Waiting' | 'In its turn', tone: Tone, title: string,
  isBehind: boolean }
/** `text`: which that is */
type Target = { code: Code, text: string }

/** States of turns whose members run the code of the rollout. */
const ARRIVED = Object.freeze({ forward: ['succeeded'], back: ['reverted', 'pending', 'skipped'] })
const VERSION = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[\w.-]+)?/

/** `rollout`: the last one @returns by member; whoever has what it should have is not in it */
export function marksOf (members: Member[], rollout: FleetRollout | null): Map<string, Mark> {
  const marks: Map<string, Mark> = new Map()
  for (const ofApp of groupsOf(members, ({ app }) => app)) {
    const target = targetOf(ofApp, rollout)
    const isDeployed = rollout !== null && isBetween(rollout) &&
      ofApp.some(({ member }) => rollout.turns[member]?.state === 'succeeded')
    for (const member of ofApp) {
      const mark = turnMark(member, rollout) ?? (target && markOf(member, target)) ??
        (isDeployed && owesTurn(member, rollout)
          ? behindMark(`Rollout ${rollout.id} of the fleet has not reached it`)
          : null)
      if (mark) marks.set(member.member, mark)
    }
  }
  return marks
}

/**
 * A member that a rollout is about to change is not behind. A held rollout changes no member by itself, and a restart
 * brings no code.
 */
function turnMark ({ member }: Member, rollout: FleetRollout | null): Mark | null {
  const turn = rollout?.turns[member]
  if (!rollout || !turn || rollout.kind === 'restart' || STATES[rollout.state].done) return null
  if (isUnderWay(turn)) {
    return { label: 'In its turn', tone: 'info', title: `Rollout ${rollout.id} of the fleet changes it now`,
      isBehind: false }
  }
  const isWaiting = goesBack(rollout) ? owesReturn(rollout, turn) : turn.state === 'pending'
  return isWaiting
    ? { label: 'Waiting', tone: 'idle', title: `It waits for its turn in rollout ${rollout.id} of the fleet`,
      isBehind: false }
    : null
}

/** `members`: of one app */
function targetOf (members: Member[], rollout: FleetRollout | null): Target | null {
  const known = members.filter(({ code }) => code && (code.commit ?? code.version) !== null)
  const arrived = rollout && rollout.kind !== 'restart'
    ? known.filter(({ member }) =>
      ARRIVED[goesBack(rollout) ? 'back' : 'forward'].includes(rollout.turns[member]?.state)
    )
    : []
  const codesOf = (of: Member[]) => of.flatMap(({ code }) => code ?? [])
  if (arrived.length > 0)
    return { code: mostCommonCode(codesOf(arrived)).code, text: `what rollout ${rollout?.id} of the fleet brought` }
  const newest = newestOf(codesOf(known))
  if (newest) return { code: newest, text: 'the highest version of this app' }
  if (known.length === 0) return null
  const { code, isTied } = mostCommonCode(codesOf(known))
  return isTied ? null : { code, text: 'what most members of this app have' }
}

/** Null: their versions do not differ, or cannot be compared */
function newestOf (codes: Code[]): Code | null {
  const versions = new Set(codes.map(({ version }) => version))
  if (versions.size < 2 || codes.some(({ version }) => version === null || !VERSION.test(version))) return null
  return codes.toSorted((one, other) => compareVersions(String(other.version), String(one.version)))[0]
}

/** `codes`: at least one */
function mostCommonCode (codes: Code[]): { code: Code, isTied: boolean } {
  const [first, second] = groupsOf(codes, ({ commit, version }) => commit ?? `v${version}`)
  return { code: first[0], isTied: first.length === second?.length }
}

/** @returns those with one key together, the most first */
export function groupsOf<T> (items: T[], keyOf: (item: T) => string): T[][] {
  const groups: Map<string, T[]> = new Map()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return [...groups.values()].sort((one, other) => other.length - one.length)
}

function markOf ({ code }: Member, { code: wanted, text }: Target): Mark | null {
  if (!code || (code.commit ?? code.version) === null || isSame(code, wanted)) return null
  const title = `${codeText(wanted)} is ${text}`
  const order = code.version !== null && wanted.version !== null ? compareVersions(code.version, wanted.version) : 0
  if (order > 0) return { label: 'Ahead', tone: 'info', title, isBehind: false }
  return order < 0 ? behindMark(title) : { label: 'Other code', tone: 'warn', title, isBehind: true }
}

function behindMark (title: string): Mark {
  return { label: 'Behind', tone: 'warn', title, isBehind: true }
}

function isSame (one: Code, other: Code) {
  return one.commit !== null && other.commit !== null ? one.commit === other.commit : one.version === other.version
}

/** Others have what it does not have yet, unless it has deployed by itself since. */
function owesTurn ({ member, release, code }: Member, { turns, absent }: FleetRollout) {
  if (code?.commit) return false
  const turn = turns[member]
  return turn ? turn.state !== 'succeeded' && (turn.from === null || turn.from === release) : absent.includes(member)
}

/** `rollout`: whether it brings code, and does not take it back */
function isBetween (rollout: FleetRollout) {
  return rollout.kind !== 'restart' && !goesBack(rollout)
}

/** @returns 0 where they cannot be compared */
function compareVersions (one: string, other: string): number {
  const [a, b] = [VERSION.exec(one), VERSION.exec(other)]
  if (!a || !b) return 0
  for (const part of [1, 2, 3]) {
    if (a[part] !== b[part]) return Number(a[part]) - Number(b[part])
  }
  // 1.0.0-rc.1 comes before 1.0.0.
  if (!a[4] || !b[4]) return a[4] ? -1 : b[4] ? 1 : 0
  return new Intl.Collator('en', { numeric: true }).compare(a[4], b[4])
}

export function codeText (code: Member['code']): string {
  return [code?.version, code?.commit].filter(Boolean).join(', ')
}
