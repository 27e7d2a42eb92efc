import { createCluster, type Cluster, type Services } from '../../server/cluster/cluster.ts'
import { fake, type Parts } from './fake.ts'
import type { PlainInput } from '../../server/lifecycle/state.ts'

/** What the parts of a supervisor share. `handles`: by worker */
export function clusterOf (
  { state = {}, handles = {}, receive = () => {}, ...services }: Parts<Services> & { state?: Parts<Cluster['state']>,
    handles?: Record<number, object>, receive?: (input: PlainInput) => void }
): Cluster {
  const cluster = createCluster(fake(state), servicesOf(services), receive)
  for (const [worker, handle] of Object.entries(handles)) cluster.handles.set(Number(worker), fake(handle))
  return cluster
}

/** What is around a cluster: what a test does not give does nothing, or cannot be done. */
export function servicesOf (given: Parts<Services>): Services {
  return fake({ limits: { watchdog: { timeoutMs: 0, stack: 'off' }, recycle: { maxRssBytes: 0 } }, sticky: null,
    steering: null, balance: { dispatch: 'shared', rebalance: 'off' }, rolloutTurns: null, portPerSlot: 0,
    vitals: { accept () {}, began () {}, left () {}, latest: () => null, lastMinute: () => [] },
    appMetrics: { left () {} },
    crashes: { examine: () => ({ memoryKind: null, stderr: [], said: null, note: null }), record: (event) => event },
    hooks: { has: () => false }, drift: { noteLoaded () {}, look: () => ({}), renew () {} }, ...given })
}
