/**
 * The pages of the dashboard, by what there is to be seen.
 * @typedef {object} Subjects  null: there is none
 * @property {number | null} worker  that lives
 * @property {number | null} ended  a worker that has died
 * @property {number | null} event  the newest that tells of a death or of a rollout's end
 * @property {number | null} crash
 * @property {string} release  that runs
 * @property {string | null} otherRelease
 * @property {number | null} rollout  the last
 * @property {number | null} profile
 */
/**
 * @typedef {object} Place
 * @property {string} name
 * @property {(subjects: Subjects) => string | 0 | null} pathOf  falsy: it cannot be visited
 * @property {boolean} [isStill]  it shows nothing of the cluster's state
 * @property {boolean} [isForeign]  of those who have not signed in
 * @property {string} [awaits]  a selector of what comes late
 */

/** @type {readonly Place[]} */
export const PLACES = Object.freeze([
  { name: 'overview', pathOf: () => '/' },
  { name: 'deploys', pathOf: () => '/deploys' },
  { name: 'release', pathOf: ({ release }) => `/releases/${release}` },
  { name: 'compare', pathOf: ({ otherRelease }) => otherRelease && `/releases/${otherRelease}/compare` },
  { name: 'rollout', pathOf: ({ rollout }) => rollout && `/rollouts/${rollout}` },
  { name: 'worker', pathOf: ({ worker }) => worker && `/workers/${worker}` },
  { name: 'ended', pathOf: ({ ended }) => ended && `/workers/${ended}` },
  { name: 'history', pathOf: () => '/history' },
  { name: 'event', pathOf: ({ event }) => event && `/history/${event}` },
  { name: 'crashes', pathOf: () => '/crashes' },
  { name: 'crash', pathOf: ({ crash }) => crash && `/crashes/${crash}` },
  { name: 'logs', pathOf: () => '/logs' },
  { name: 'flame', pathOf: ({ worker, profile }) => profile && `/workers/${worker}?profile=${profile}`, isStill: true, awaits: '.flame-frame' },
  { name: 'fleet', pathOf: () => '/fleet', isStill: true },
  { name: 'fleet-rollout', pathOf: () => '/fleet/rollouts/7', isStill: true },
  { name: 'fleet-member', pathOf: () => '/fleet/members/web-3-shop', isStill: true },
  { name: 'fleet-crashes', pathOf: () => '/fleet/crashes', isStill: true },
  { name: 'fleet-history', pathOf: () => '/fleet/history', isStill: true },
  { name: 'fleet-logs', pathOf: () => '/fleet/logs', isStill: true },
  { name: 'settings', pathOf: () => '/settings', isStill: true },
  { name: 'profiles', pathOf: () => '/profiles', isStill: true },
  { name: 'routes', pathOf: () => '/routes' },
  { name: 'checks', pathOf: () => '/checks', isStill: true },
  { name: 'access', pathOf: () => '/access', isStill: true },
  { name: 'jobs', pathOf: () => '/jobs', isStill: true },
  { name: 'alerts', pathOf: () => '/alerts', isStill: true },
  { name: 'alert-form', pathOf: () => '/alerts?new=slack', isStill: true },
  { name: 'docs', pathOf: () => '/docs', isStill: true },
  { name: 'options', pathOf: () => '/docs/options', isStill: true },
  { name: 'nowhere', pathOf: () => '/nowhere', isStill: true },
  { name: 'sign-in', pathOf: () => '/', isStill: true, isForeign: true }
])

/**
 * What the deck itself says that there is.
 * @param {(where: string) => Promise<any>} ask  a path below /api/v1, and what it answers
 * @returns {Promise<Subjects>}
 */
export async function subjectsOf (ask) {
  const status = await ask('/status')
  const firstOf = async (/** @type {string} */ where) => (await ask(where)).items?.[0] ?? null
  const exit = await firstOf('/events?type=worker.exited&limit=1')
  const event = await firstOf('/events?type=rollout.failed,rollout.rolled-back,worker.crash-looping,rollout.held,history.degraded&limit=1')
  const { items: releases = [] } = await ask('/releases?limit=5')
  const profile = (await ask('/diagnostics')).items?.find((/** @type {any} */ { kind, state }) => kind === 'cpu-profile' && state === 'done')
  return {
    worker: status.workers.find((/** @type {any} */ { id, pid }) => id !== null && pid !== null)?.id ?? null,
    ended: exit?.worker ?? null,
    event: (event ?? exit)?.id ?? null,
    crash: (await firstOf('/crashes'))?.id ?? null,
    release: status.release.id,
    otherRelease: releases.find((/** @type {any} */ { id }) => id !== status.release.id)?.id ?? null,
    rollout: (await firstOf('/rollouts'))?.id ?? null,
    profile: profile?.id ?? null
  }
}
