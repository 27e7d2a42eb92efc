import type { Status } from '../../server/api/cluster.ts'
import type { Diagnostics } from '../../server/diagnostics/api.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

// The pages of the dashboard, by what there is to be seen: for the pictures of all states, and for those who look at
// each page in one.

/** Null: there is none. */
type Subjects = {
  /** that lives */
  worker: number | null,
  /** a worker that has died */
  ended: number | null,
  /** the newest that tells of a death or of a rollout's end */
  event: number | null,
  crash: number | null,
  /** that runs */
  release: string,
  otherRelease: string | null,
  /** the last */
  rollout: number | null,
  profile: number | null,
  /** of the fleet */
  member: string
}
type Path = string | ((subjects: Subjects) => string | 0 | null)
export type Place = {
  name: string,
  /** falsy: it cannot be visited */
  pathOf: (subjects: Subjects) => string | 0 | null,
  /** it shows nothing of the cluster's state */
  isStill: boolean,
  /** of those who have not signed in */
  isForeign?: boolean
}

const LIVE: Record<string, Path> = { overview: '/', deploys: '/deploys',
  release: ({ release }) => `/releases/${release}`,
  compare: ({ release, otherRelease }) => otherRelease && `/compare?from=${otherRelease}&to=${release}`,
  rollout: ({ rollout }) => rollout && `/rollouts/${rollout}`, worker: ({ worker }) => worker && `/workers/${worker}`,
  ended: ({ ended }) => ended && `/workers/${ended}`, history: '/history',
  event: ({ event }) => event && `/history/${event}`, crashes: '/crashes',
  crash: ({ crash }) => crash && `/crashes/${crash}`, logs: '/logs', routes: '/routes' }

const STILL: Record<string, Path> = {
  busiest: ({ worker, profile }) => profile && `/workers/${worker}?profile=${profile}`,
  fleet: '/fleet',
  'fleet-rollout': '/fleet/rollouts/7',
  'fleet-member': ({ member }) => `/fleet/members/${member}`,
  'fleet-crashes': '/crashes?member=*',
  'fleet-history': '/history?member=*',
  'fleet-logs': '/logs?member=*',
  settings: '/settings',
  profiles: '/profiles',
  checks: '/checks',
  access: '/access',
  metrics: '/app-metrics',
  jobs: '/jobs',
  alerts: '/alerts',
  'alert-form': '/alerts?new=mail',
  docs: '/docs',
  options: '/docs/options',
  nowhere: '/nowhere'
}

export const PLACES: readonly Place[] = [...placesOf(LIVE, { isStill: false }), ...placesOf(STILL, { isStill: true }), {
  name: 'sign-in',
  pathOf: () => '/',
  isStill: true,
  isForeign: true
}]

/** Pages of a host, and of an app beside the shop. */
export const PLACES_OF_HOST: readonly Place[] = placesOf({ apps: '/', 'host-history': '/history',
  'host-alerts': '/alerts', 'host-access': '/access', python: '/apps/search/',
  'python-worker': '/apps/search/workers/1', stopped: '/apps/old-shop/' }, { isStill: true })

function placesOf (paths: Record<string, Path>, { isStill }: { isStill: boolean }): Place[] {
  return Object.entries(paths).map(([name, path]) => ({ name, isStill,
    pathOf: typeof path === 'string' ? () => path : path })
  )
}

/** `where`: a path below /api/v1 */
export type Ask = <T>(where: string) => Promise<T>

/** What the deck itself says that there is. `ask`: a path below /api/v1, and what it answers. */
export async function subjectsOf (ask: Ask): Promise<Subjects> {
  const status = await ask<Status>('/status')
  const firstOf = async <T extends { id: number }>(where: string) =>
    (await ask<{ items?: T[] }>(where)).items?.[0] ?? null
  const exit = await firstOf<DeckEvent>('/events?type=worker.exited&limit=1')
  const event = await firstOf(
    '/events?type=rollout.failed,rollout.rolled-back,worker.crash-looping,rollout.held,history.degraded&limit=1'
  )
  const { items: releases = [] } = await ask<{ items?: { id: string }[] }>('/releases?limit=5')
  const profile = (await ask<{ items?: Diagnostics[] }>('/diagnostics')).items?.find(({ kind, state }) =>
    kind === 'cpu-profile' && state === 'done'
  )
  return { worker: status.workers.find(({ id, pid }) => id !== null && pid !== null)?.id ?? null,
    ended: exit?.worker ?? null, event: (event ?? exit)?.id ?? null, crash: (await firstOf('/crashes'))?.id ?? null,
    release: status.release.id, otherRelease: releases.find(({ id }) => id !== status.release.id)?.id ?? null,
    rollout: (await firstOf('/rollouts'))?.id ?? null, profile: profile?.id ?? null, member: 'web-3-shop' }
}
