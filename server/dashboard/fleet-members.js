import { codeText, groupsOf } from '../api/fleet-builds.js'
import { lastKnownText } from '../last-known.js'
import { urlOf } from './history-filters.js'

/**
 * The members of a fleet as a list shows them, and its filters.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {import('../api/fleet-builds.js').Mark} Mark
 * @typedef {Partial<Record<'health' | 'label' | 'q' | 'page', string>>} Filters  as in the URL
 * @typedef {Member & { mark: Mark | null }} Marked
 */

/** Filters by health. @type {Readonly<Record<string, { label: string, isOf: (member: Marked) => boolean }>>} */
export const HEALTHS = Object.freeze({
  all: { label: 'All', isOf: () => true },
  silent: { label: 'Silent', isOf: isSilent },
  ill: { label: 'Not well', isOf: isIll },
  behind: { label: 'Behind', isOf: ({ mark }) => mark?.isBehind ?? false }
})

const ILL = Object.freeze(['bad', 'warn'])
const BLANK_ROLLOUT = Object.freeze({ id: 0, kind: '', state: '', replaced: 0, total: 0 })

/** A host never counts itself as silent, whatever NATS does. @param {Pick<Member, 'isSilent' | 'isOwn'>} member */
export function isSilent ({ isSilent, isOwn }) {
  return isSilent && !isOwn
}

/** @param {Member} member */
export function isIll (member) {
  return !isSilent(member) && ILL.includes(member.health.tone)
}

/**
 * @param {Pick<Member, 'isOwn' | 'url'> | undefined} member its current state @param {string} path
 * @returns {string | null} this page in the dashboard of that member; null: it is not known where that is
 */
export function urlOn (member, path) {
  if (member?.isOwn) return path
  return member?.url ? member.url.replace(/\/$/, '') + path : null
}

/** @param {Filters} filters @param {Record<string, string | undefined>} [changes] */
export function linkTo (filters, changes) {
  return urlOf('/fleet', { health: undefined, label: undefined, q: undefined, page: undefined, ...filters }, changes)
}

/**
 * @param {Marked[]} members @param {Filters} filters @param {boolean} [isAway]  NATS is away, so all others are silent
 * @returns {Marked[]} silent ones first, then those that are not well, then by name
 */
export function selectMembers (members, { health = 'all', label, q }, isAway = false) {
  const isWanted = HEALTHS[health].isOf
  const [, name, value] = /^([\w.-]+):(.*)$/s.exec(label ?? '') ?? []
  const text = q?.toLowerCase()
  return members
    .filter(isWanted)
    .filter(({ labels }) => name === undefined || labels[name] === value)
    .filter(({ member, host, app }) => text === undefined || `${member} ${host} ${app}`.toLowerCase().includes(text))
    .toSorted((one, other) => (isAway ? 0 : urgencyOf(one) - urgencyOf(other)) || (one.member < other.member ? -1 : 1))
}

/** @param {Member} member */
function urgencyOf (member) {
  return isSilent(member) ? 0 : member.health.tone === 'bad' ? 1 : member.health.tone === 'warn' ? 2 : 3
}

/**
 * @param {Marked} member
 * @param {{
 *   observations: Pick<import('./fleet-observations.js').Observations, 'heardAt' | 'pointsOf'>,
 *   isAway: boolean,
 *   usualVersion: string,
 *   filters: Filters
 * }} parts  `isAway`: NATS is away, so all others are silent
 */
export function toMemberRow (member, { observations, isAway, usualVersion, filters }) {
  const { labels, rollout, version, code, ...rest } = member
  const isQuiet = isSilent(member)
  /** @type {Tone} */
  const tone = isQuiet ? isAway ? 'idle' : 'bad' : member.health.tone
  return {
    ...rest,
    isSilent: isQuiet,
    isAway,
    heardAt: isQuiet ? observations.heardAt(member.member) : null,
    lastKnown: isQuiet ? lastKnownText([member]) : null,
    tone,
    code: codeText(code),
    rollout: !isQuiet && rollout
      ? { ...BLANK_ROLLOUT, ...rollout, percent: rollout.total === 0 ? 0 : Math.round(100 * rollout.replaced / rollout.total) }
      : null,
    version,
    isOddVersion: version !== usualVersion,
    points: observations.pointsOf(member.member),
    labels: labelTexts(member).map((text) => ({ text, url: linkTo({ ...filters, page: undefined }, { label: text }) })),
    pageUrl: `/fleet/members/${member.member}`
  }
}

/** @param {Pick<Member, 'version'>[]} members @returns {string} the version of clusterdeck that most members run */
export function usualVersionOf (members) {
  return groupsOf(members, ({ version }) => version)[0]?.[0].version ?? ''
}

/** @param {Member[]} members @returns {string[]} all labels as `name:value`, sorted */
export function labelsOf (members) {
  return [...new Set(members.flatMap(labelTexts))].sort(new Intl.Collator('en', { numeric: true }).compare)
}

/** @param {Pick<Member, 'labels'>} member @returns {string[]} `name:value` */
function labelTexts ({ labels }) {
  return Object.entries(labels).map(([name, value]) => `${name}:${value}`)
}

/**
 * The health of the fleet in one sentence, the most urgent fact first.
 * @param {Marked[]} members
 * @param {{ nats: import('../fleet/nats-connection.js').Presence, rollout: import('../fleet/rollout.js').FleetRollout | null }} parts
 * @returns {{ tone: Tone, text: string }}
 */
export function healthOf (members, { nats, rollout }) {
  const all = members.length === 1 ? '1 member' : `${members.length} members`
  if (!nats.isConnected) return { tone: 'warn', text: 'This host is cut off from the fleet' }
  const countOf = (/** @type {string} */ health) => members.filter(HEALTHS[health].isOf).length
  const [silent, ill, behind] = [countOf('silent'), countOf('ill'), countOf('behind')]
  const parts = [silent > 0 && `${silent} silent`, ill > 0 && `${ill} not well`, behind > 0 && `${behind} behind`].filter(Boolean)
  const held = rollout?.state === 'held' ? `Rollout ${rollout.id} is held. ` : ''
  const isBad = silent > 0 || members.some((member) => isIll(member) && member.health.tone === 'bad') || held !== ''
  const isUnderWay = rollout !== null && ['running', 'paused', 'rolling-back'].includes(rollout.state)
  if (silent + ill === 0) {
    const well = members.length === 1 ? 'The one member is well' : `All ${members.length} members are well`
    return { tone: isBad ? 'bad' : isUnderWay ? 'info' : behind > 0 ? 'warn' : 'ok', text: `${held}${well}${behind > 0 ? `, ${behind} behind` : ''}` }
  }
  return { tone: isBad ? 'bad' : 'warn', text: `${held}${all}: ${parts.join(', ')}` }
}
