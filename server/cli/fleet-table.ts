import { formatAgo, formatDuration, formatLatency, formatRate } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import type { FleetHostApp as App, FleetHostMember as Host, HostFleet } from '../api/host-fleet.ts'

/** The columns of rowOf(). */
export const COLUMNS = Object.freeze(['MEMBER', 'HEALTH', 'READY', 'RELEASE', 'REQ/S', 'P99', 'CRASHES', 'HEARD',
  'VERSION'])

/** @returns lines about how it is reached */
export function connectionFacts ({ nats, problem }: Pick<HostFleet, 'nats' | 'problem'>): string[] {
  return [
    `nats      ${
      nats.isConnected
        ? `connected to ${nats.server}`
        : `out of reach since ${nats.since}: ${oneLine(String(nats.problem))}`
    }`,
    ...(problem ? [`problem   ${oneLine(problem)}`] : [])
  ]
}

/** `app`: null: the host has none */
export function rowOf (
  { member, isSilent, isOwn, ageMs, version }: Pick<Host, 'member' | 'isSilent' | 'isOwn' | 'ageMs' | 'version'>,
  app: Pick<App, 'health' | 'workers' | 'release' | 'mark' | 'vitals' | 'openCrashes'> | null
) {
  const health = isSilent && !isOwn ? `silent for ${formatDuration(ageMs)}` : app?.health.text ?? 'No apps'
  return [member, health, ...(app ? cellsOf(app) : [null, null, null, null, null]), formatAgo(ageMs), version]
}

function cellsOf (
  { workers, release, mark, vitals, openCrashes }: Pick<App, 'workers' | 'release' | 'mark' | 'vitals' | 'openCrashes'>
) {
  return [`${workers.ready}/${workers.desired}`, mark ? `${release} (${mark.label.toLowerCase()})` : release,
    formatRate(vitals.requestsPerSecond), formatLatency(vitals.latencyP99Ms), openCrashes]
}
