import { formatAgo, formatDuration, formatLatency, formatRate } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { tableOf, type Columns } from '../cli/output.ts'
import type { HostFleet } from './api-answers.ts'
import type { FleetHostApp as App, FleetHostMember as Host } from './api-host.ts'

type Known = Pick<App, 'health' | 'workers' | 'release' | 'mark' | 'vitals' | 'openCrashes'> & { app?: string }
/** An app of a host; null: the host has none. */
type Row = { host: Pick<Host, 'member' | 'isSilent' | 'isOwn' | 'ageMs' | 'version'>, app: Known | null }

const COLUMNS: Columns<Row> = Object.freeze({ MEMBER: ({ host }) => host.member, APP: ({ app }) => app?.app,
  HEALTH: healthText, READY: [true, ({ app }) => app && `${app.workers.ready}/${app.workers.desired}`],
  RELEASE: ({ app }) => app?.mark ? `${app.release} (${app.mark.label.toLowerCase()})` : app?.release,
  'REQ/S': [true, ({ app }) => app && formatRate(app.vitals.requestsPerSecond)],
  P99: [true, ({ app }) => app && formatLatency(app.vitals.latencyP99Ms)],
  CRASHES: [true, ({ app }) => app?.openCrashes], HEARD: [true, ({ host }) => formatAgo(host.ageMs)],
  VERSION: ({ host }) => host.version })

/** `hasApps`: with the names of the apps */
export function fleetTable (rows: readonly Row[], { hasApps }: { hasApps: boolean }): string {
  return tableOf(rows, Object.keys(COLUMNS).filter((column) => column !== 'APP' || hasApps), COLUMNS)
}

function healthText ({ host: { isSilent, isOwn, ageMs }, app }: Row) {
  return isSilent && !isOwn ? `silent for ${formatDuration(ageMs)}` : app?.health.text ?? 'No apps'
}

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
