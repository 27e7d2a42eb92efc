import type { Status } from '../../server/api/cluster.ts'
import type { Diagnostics } from '../../server/api/diagnostics.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

// The pages of the dashboard, by what there is to be seen.

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
  profile: number | null
}
export type Place = {
  name: string,
  /** falsy: it cannot be visited */
  pathOf: (subjects: Subjects) => string | 0 | null,
  /** it shows nothing of the cluster's state */
  isStill?: boolean,
  /** of those who have not signed in */
  isForeign?: boolean
}

export const PLACES: readonly Place[] = [{ name: 'overview', pathOf: () => '/' }, { name: 'deploys',
  pathOf: () => '/deploys' }, { name: 'release', pathOf: ({ release }) => `/releases/${release}` }, { name: 'compare',
  pathOf: ({ otherRelease }) => otherRelease && `/releases/${otherRelease}/compare` }, { name: 'rollout',
  pathOf: ({ rollout }) => rollout && `/rollouts/${rollout}` }, { name: 'worker',
  pathOf: ({ worker }) => worker && `/workers/${worker}` }, { name: 'ended',
  pathOf: ({ ended }) => ended && `/workers/${ended}` }, { name: 'history', pathOf: () => '/history' }, { name: 'event',
  pathOf: ({ event }) => event && `/history/${event}` }, { name: 'crashes', pathOf: () => '/crashes' }, { name: 'crash',
  pathOf: ({ crash }) => crash && `/crashes/${crash}` }, { name: 'logs', pathOf: () => '/logs' }, { name: 'busiest',
  pathOf: ({ worker, profile }) => profile && `/workers/${worker}?profile=${profile}`, isStill: true }, { name: 'fleet',
  pathOf: () => '/fleet', isStill: true }, { name: 'fleet-rollout', pathOf: () => '/fleet/rollouts/7', isStill: true },
  { name: 'fleet-member', pathOf: () => '/fleet/members/web-3-shop', isStill: true }, { name: 'fleet-crashes',
  pathOf: () => '/crashes?member=*', isStill: true }, { name: 'fleet-history', pathOf: () => '/history?member=*',
  isStill: true }, { name: 'fleet-logs', pathOf: () => '/logs?member=*', isStill: true }, { name: 'settings',
  pathOf: () => '/settings', isStill: true }, { name: 'profiles', pathOf: () => '/profiles', isStill: true }, {
  name: 'routes',
  pathOf: () => '/routes'
}, { name: 'checks', pathOf: () => '/checks', isStill: true }, { name: 'access', pathOf: () => '/access',
  isStill: true }, { name: 'jobs', pathOf: () => '/jobs', isStill: true }, { name: 'alerts', pathOf: () => '/alerts',
  isStill: true }, { name: 'alert-form', pathOf: () => '/alerts?new=slack', isStill: true }, { name: 'docs',
  pathOf: () => '/docs', isStill: true }, { name: 'options', pathOf: () => '/docs/options', isStill: true }, {
  name: 'nowhere',
  pathOf: () => '/nowhere',
  isStill: true
}, { name: 'sign-in', pathOf: () => '/', isStill: true, isForeign: true }]

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
    rollout: (await firstOf('/rollouts'))?.id ?? null, profile: profile?.id ?? null }
}
