import { codeText, groupsOf } from '../api/fleet-builds.js'
import { urlOf } from './history-filters.js'

/**
 * The members of a fleet as a list shows them, and which of them somebody wants to see.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {import('../api/fleet-builds.js').Mark} Mark
 * @typedef {Partial<Record<'health' | 'label' | 'q' | 'page', string>>} Filters  as they stand in the address
 * @typedef {Member & { mark: Mark | null }} Marked
 * @typedef {keyof typeof HEALTHS} Health
 */

/** What a list can be narrowed to. */
export const HEALTHS = Object.freeze({
  all: { label: 'All', isOf: () => true },
  silent: { label: 'Silent', isOf: isSilent },
  ill: { label: 'Not well', isOf: isIll },
  behind: { label: 'Behind', isOf: (/** @type {Marked} */ { mark }) => mark?.isBehind ?? false }
})

const ILL = Object.freeze(['bad', 'warn'])
const BLANK_ROLLOUT = Object.freeze({ id: 0, kind: '', state: '', replaced: 0, total: 0 })

/** Itself it hears, whatever NATS does. @param {Member} member */
export function isSilent ({ isSilent, isOwn }) {
  return isSilent && !isOwn
}

/** @param {Member} member of those that can be heard */
export function isIll (member) {
  return !isSilent(member) && ILL.includes(member.health.tone)
}

/** @param {Filters} filters @param {Record<string, string | undefined>} [changes] */
export function linkTo (filters, changes) {
  return urlOf('/fleet', { health: undefined, label: undefined, q: undefined, page: undefined, ...filters }, changes)
}

/**
 * @param {Marked[]} members @param {Filters} filters @param {boolean} [isAway]  all others are silent then
 * @returns {Marked[]} those that are silent first, then those that are not well, then by name
 */
export function chosen (members, { health = 'all', label, q }, isAway = false) {
  const isWanted = HEALTHS[/** @type {Health} */ (health)].isOf
  const [, name, value] = /^([\w.-]+):(.*)$/s.exec(label ?? '') ?? []
  const text = q?.toLowerCase()
  return members
    .filter((member) => isWanted(member) && (name === undefined || member.labels[name] === value) && (text === undefined || `${member.member} ${member.host} ${member.app}`.toLowerCase().includes(text)))
    .toSorted((one, other) => (isAway ? 0 : urgency(one) - urgency(other)) || (one.member < other.member ? -1 : 1))
}

/** @param {Member} member */
function urgency (member) {
  return isSilent(member) ? 0 : member.health.tone === 'bad' ? 1 : member.health.tone === 'warn' ? 2 : 3
}

/**
 * @param {Marked} member
 * @param {{ memory: Pick<import('./fleet-observations.js').Observations, 'heardAt' | 'pointsOf'>, isAway: boolean, usualVersion: string, filters: Filters }} parts  `isAway`: all others are silent then
 */
export function toMemberRow (member, { memory, isAway, usualVersion, filters }) {
  const { labels, rollout, version, code, ...rest } = member
  const isQuiet = isSilent(member)
  return {
    ...rest,
    isSilent: isQuiet,
    isAway,
    heardAt: isQuiet ? memory.heardAt(member.member) : null,
    tone: /** @type {Tone} */ (isQuiet ? isAway ? 'idle' : 'bad' : member.health.tone),
    code: codeText(code),
    rollout: !isQuiet && rollout ? { ...BLANK_ROLLOUT, ...rollout, percent: rollout.total === 0 ? 0 : Math.round(100 * rollout.replaced / rollout.total) } : null,
    version,
    isOddVersion: version !== usualVersion,
    points: memory.pointsOf(member.member),
    labels: Object.entries(labels).map(([name, value]) => ({ text: `${name}:${value}`, url: linkTo({ ...filters, page: undefined }, { label: `${name}:${value}` }) })),
    pageUrl: `/fleet/members/${member.member}`
  }
}

/** @param {Member[]} members @returns {string} the version of clusterdeck that most of them have */
export function usualVersionOf (members) {
  return groupsOf(members, ({ version }) => version)[0]?.[0].version ?? ''
}

/** @param {Member[]} members @returns {string[]} `name:value` of all labels, by name */
export function labelsOf (members) {
  return [...new Set(members.flatMap(({ labels }) => Object.entries(labels).map(([name, value]) => `${name}:${value}`)))].sort(new Intl.Collator('en', { numeric: true }).compare)
}

/**
 * How the fleet is, most urgent truth first.
 * @param {Marked[]} members
 * @param {{ nats: import('../fleet/nats-connection.js').Presence, rollout: import('../fleet/rollout.js').FleetRollout | null }} parts
 * @returns {{ tone: Tone, text: string }}
 */
export function healthOf (members, { nats, rollout }) {
  const all = members.length === 1 ? '1 member' : `${members.length} members`
  if (!nats.isConnected) return { tone: 'warn', text: 'The fleet is out of reach' }
  const countOf = (/** @type {Health} */ health) => members.filter(HEALTHS[health].isOf).length
  const [silent, ill, behind] = [countOf('silent'), countOf('ill'), countOf('behind')]
  const parts = [silent > 0 && `${silent} silent`, ill > 0 && `${ill} not well`, behind > 0 && `${behind} behind`].filter(Boolean)
  const isBad = silent > 0 || members.some((member) => isIll(member) && member.health.tone === 'bad') || rollout?.state === 'held'
  const isUnderWay = rollout !== null && ['running', 'paused', 'rolling-back'].includes(rollout.state)
  if (silent + ill === 0) {
    const well = members.length === 1 ? 'The one member is well' : `All ${members.length} members are well`
    return { tone: isBad ? 'bad' : isUnderWay ? 'info' : behind > 0 ? 'warn' : 'ok', text: behind > 0 ? `${well}, ${behind} behind` : well }
  }
  return { tone: isBad ? 'bad' : 'warn', text: `${all}: ${parts.join(', ')}` }
}
