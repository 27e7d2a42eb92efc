import { codeText, groupsOf, type Mark } from './api-builds.ts'
import { STATES, type FleetRollout } from './document.ts'
import { lastKnownText } from '../words/last-known.ts'
import { urlOf } from '../events/page-filters.ts'
import type { FleetDeck } from './api.ts'
import type { Tone } from '../events/kinds.ts'
import type { Member } from './presence.ts'
import type { Observations } from './page-observations.ts'
import type { Presence } from './nats-connection.ts'

/** The members of a fleet as a list shows them, and its filters. */
/** as in the URL */
export type Filters = Partial<Record<'health' | 'label' | 'q' | 'page', string>>
export type Marked =
  & Member
  & { mark: Mark | null }

/** Filters by health. */
export const HEALTHS: Readonly<Record<string, { label: string, isOf: (member: Marked) => boolean }>> = Object.freeze({
  all: { label: 'All', isOf: () => true },
  silent: { label: 'Silent', isOf: isSilent },
  ill: { label: 'Not well', isOf: isIll },
  behind: { label: 'Behind', isOf: ({ mark }) => mark?.isBehind ?? false }
})

const ILL = Object.freeze(['bad', 'warn'])
const BLANK_ROLLOUT = Object.freeze({ id: 0, kind: '', state: '', replaced: 0, total: 0 })

/** A host never counts itself as silent, whatever NATS does. */
export function isSilent ({ isSilent, isOwn }: Pick<Member, 'isSilent' | 'isOwn'>) {
  return isSilent && !isOwn
}

export function isIll (member: Member) {
  return !isSilent(member) && ILL.includes(member.health.tone)
}

/**
 * `member`: its current state.
 * @returns this page in the dashboard of that member; null: it is not known where that is
 */
export function urlOn (member: Pick<Member, 'isOwn' | 'url'> | undefined, path: string): string | null {
  if (member?.isOwn) return path
  return member?.url ? member.url.replace(/\/$/, '') + path : null
}

export function hostChoices ({ fleet }: Pick<FleetDeck, 'fleet'>) {
  return { members: fleet?.status().members.map(({ member }) => member) ?? [] }
}

export function linkTo (filters: Filters, changes?: Record<string, string | undefined>) {
  return urlOf('/fleet', { health: undefined, label: undefined, q: undefined, page: undefined, ...filters }, changes)
}

/**
 * @param isAway NATS is away, so all others are silent
 * @returns silent ones first, then those that are not well, then by name
 */
export function selectMembers (members: Marked[], { health = 'all', label, q }: Filters,
  isAway: boolean = false): Marked[]
{
  const isWanted = HEALTHS[health].isOf
  const [, name, value] = /^([\w.-]+):(.*)$/s.exec(label ?? '') ?? []
  const text = q?.toLowerCase()
  return members.filter(isWanted).filter(({ labels }) => name === undefined || labels[name] === value).filter((
    { member, host, app }
  ) => text === undefined || `${member} ${host} ${app}`.toLowerCase().includes(text)).toSorted((one, other) =>
    (isAway ? 0 : urgencyOf(one) - urgencyOf(other)) || (one.member < other.member ? -1 : 1)
  )
}

function urgencyOf (member: Member) {
  return isSilent(member) ? 0 : member.health.tone === 'bad' ? 1 : member.health.tone === 'warn' ? 2 : 3
}

/** `isAway`: NATS is away, so all others are silent */
export function toMemberRow (member: Marked,
  { observations, isAway, usualVersion, filters }: { observations: Pick<Observations, 'heardAt'>, isAway: boolean,
    usualVersion: string, filters: Filters })
{
  const { labels, rollout, version, code, ...rest } = member
  const isQuiet = isSilent(member)
  return { ...rest, isSilent: isQuiet, isAway, heardAt: isQuiet ? observations.heardAt(member.member) : null,
    lastKnown: isQuiet ? lastKnownText([member]) : null, tone: toneOf(member, isAway), code: codeText(code),
    rollout: !isQuiet && rollout
      ? { ...BLANK_ROLLOUT, ...rollout,
        percent: rollout.total === 0 ? 0 : Math.round(100 * rollout.replaced / rollout.total) }
      : null, version, isOddVersion: version !== usualVersion,
    labels: labelTexts(member).map((text) => ({ text, url: linkTo({ ...filters, page: undefined }, { label: text }) })),
    pageUrl: `/fleet/members/${member.member}` }
}

/**
 * The figures of all hosts together. `appsOf`: the apps of a host that the page is about; `tones`: how each host is.
 */
export function totalsOf<H extends Pick<Member, 'member' | 'isSilent' | 'isOwn' | 'version'>> (hosts: readonly H[],
  appsOf: (host: H) => Pick<Member, 'app' | 'workers' | 'vitals' | 'openCrashes'>[], tones: readonly Tone[])
{
  const there = hosts.filter((host) => !isSilent(host))
  const apps = there.flatMap((host) => appsOf(host).map((app) => ({ ...app, member: host.member })))
  const sumOf = (of: (app: typeof apps[number]) => number) => apps.reduce((total, each) => total + of(each), 0)
  const [slowest] = apps.filter(({ vitals }) => vitals.latencyP99Ms !== null).toSorted((one, other) =>
    Number(other.vitals.latencyP99Ms) - Number(one.vitals.latencyP99Ms)
  )
  const usual = usualVersionOf(hosts)
  return { there: there.length, all: hosts.length, tones: tonesOf(tones),
    workers: { ready: sumOf(({ workers }) => workers.ready), desired: sumOf(({ workers }) => workers.desired) },
    requestsPerSecond: apps.every(({ vitals }) => vitals.requestsPerSecond === null)
      ? null
      : sumOf(({ vitals }) => vitals.requestsPerSecond ?? 0),
    slowest: slowest ? { member: slowest.member, latencyP99Ms: slowest.vitals.latencyP99Ms } : null,
    openCrashes: sumOf(({ openCrashes }) => openCrashes ?? 0),
    crashing: new Set(apps.filter(({ openCrashes }) => (openCrashes ?? 0) > 0).map(({ member }) => member)).size,
    version: usual, otherVersions: hosts.filter(({ version }) => version !== usual).length }
}

/** @returns parts of a bar that is 100 wide, each with its words */
function tonesOf (tones: readonly Tone[]) {
  const shown = tones.map((tone) => tone === 'drain' ? 'info' : tone)
  let x = 0
  const words = { ok: 'well', info: 'changing', warn: 'not well', bad: 'in trouble', idle: 'not known' }
  return Object.entries(words).flatMap(([tone, word]) => {
    const hosts = shown.filter((each) => each === tone).length
    const width = 100 * hosts / shown.length
    x += width
    if (hosts === 0) return []
    return [{ tone, text: `${hosts} ${word}`, x: toTwoDecimals(x - width), width: toTwoDecimals(width) }]
  })
}

function toTwoDecimals (value: number) {
  return Math.round(value * 100) / 100
}

/** How a host is; one that NATS does not let us hear is neither well nor not. */
export function toneOf (member: Member, isAway: boolean): Tone {
  return isSilent(member) ? isAway ? 'idle' : 'bad' : member.health.tone
}

/** @returns the version of clusterdeck that most members run */
export function usualVersionOf (members: readonly Pick<Member, 'version'>[]): string {
  return groupsOf([...members], ({ version }) => version)[0]?.[0].version ?? ''
}

/** @returns all labels as `name:value`, sorted */
export function labelsOf (members: Member[]): string[] {
  return [...new Set(members.flatMap(labelTexts))].sort(new Intl.Collator('en', { numeric: true }).compare)
}

/** @returns `name:value` */
function labelTexts ({ labels }: Pick<Member, 'labels'>): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}:${value}`)
}

/** The health of the fleet in one sentence, the most urgent fact first. */
export function healthOf (members: Marked[],
  { nats, rollout }: { nats: Presence, rollout: FleetRollout | null }): { tone: Tone, text: string }
{
  const all = members.length === 1 ? '1 member' : `${members.length} members`
  if (!nats.isConnected) return { tone: 'warn', text: 'This host is cut off from the fleet' }
  const countOf = (health: string) => members.filter(HEALTHS[health].isOf).length
  const [silent, ill] = [countOf('silent'), countOf('ill')]
  // One that is silent or not well is not counted twice.
  const behind = members.filter((each) => each.mark?.isBehind && !isSilent(each) && !isIll(each)).length
  const parts = [silent > 0 && `${silent} silent`, ill > 0 && `${ill} not well`, behind > 0 && `${behind} behind`]
    .filter(Boolean)
  const held = rollout?.state === 'held' ? `Rollout ${rollout.id} is held. ` : ''
  const isBad = silent > 0 || members.some((member) => isIll(member) && member.health.tone === 'bad') || held !== ''
  const isUnderWay = rollout !== null && !STATES[rollout.state].done
  if (silent + ill === 0) {
    const well = members.length === 1 ? 'The one member is well' : `All ${members.length} members are well`
    return { tone: isBad ? 'bad' : isUnderWay ? 'info' : behind > 0 ? 'warn' : 'ok',
      text: `${held}${well}${behind > 0 ? `, ${behind} behind` : ''}` }
  }
  return { tone: isBad ? 'bad' : 'warn', text: `${held}${all}: ${parts.join(', ')}` }
}
