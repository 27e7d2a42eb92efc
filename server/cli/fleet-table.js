import { formatAgo, formatDuration, formatLatency, formatRate } from '../../public/format.js'
import { oneLine } from '../system/one-line.js'

/** @typedef {import('../api/host-fleet.js').FleetHostMember} Host */
/** @typedef {import('../api/host-fleet.js').FleetHostApp} App */

/** The columns of rowOf(). */
export const COLUMNS = Object.freeze(['MEMBER', 'HEALTH', 'READY', 'RELEASE', 'REQ/S', 'P99', 'CRASHES', 'HEARD', 'VERSION'])

/** @param {Pick<import('../api/host-fleet.js').HostFleet, 'nats' | 'problem'>} fleet @returns {string[]} lines about how it is reached */
export function connectionFacts ({ nats, problem }) {
  return [
    `nats      ${nats.isConnected ? `connected to ${nats.server}` : `out of reach since ${nats.since}: ${oneLine(String(nats.problem))}`}`,
    ...(problem ? [`problem   ${oneLine(problem)}`] : [])
  ]
}

/**
 * @param {Pick<Host, 'member' | 'isSilent' | 'isOwn' | 'ageMs' | 'version'>} host
 * @param {Pick<App, 'health' | 'workers' | 'release' | 'mark' | 'vitals' | 'openCrashes'> | null} app  null: the host has none
 */
export function rowOf ({ member, isSilent, isOwn, ageMs, version }, app) {
  const health = isSilent && !isOwn ? `silent for ${formatDuration(ageMs)}` : app?.health.text ?? 'No apps'
  return [member, health, ...(app ? cellsOf(app) : [null, null, null, null, null]), formatAgo(ageMs), version]
}

/** @param {Pick<App, 'workers' | 'release' | 'mark' | 'vitals' | 'openCrashes'>} app */
function cellsOf ({ workers, release, mark, vitals, openCrashes }) {
  return [
    `${workers.ready}/${workers.desired}`,
    mark ? `${release} (${mark.label.toLowerCase()})` : release,
    formatRate(vitals.requestsPerSecond),
    formatLatency(vitals.latencyP99Ms),
    openCrashes
  ]
}
