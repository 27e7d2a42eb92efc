import { setTimeout as wait } from 'node:timers/promises'
import type { FleetSite, Host } from './fleet-site.ts'

/** What can happen to a fleet in the middle of a rollout. Each is over when it has been mended. */
export type FleetFault = {
  title: string,
  /** the host says nothing meanwhile, so that a person may give it up */
  isSilencing?: boolean,
  /** its own rollout ends with its master */
  isKilling?: boolean,
  /** NATS knows less afterwards */
  isForgetting?: boolean,
  act: (site: FleetSite, at: { host: Host, index: number, ms: number }) => Promise<unknown>
}

export const FLEET_FAULTS: FleetFault[] = [{ title: 'nothing', act: async () => {} }, { title: 'all servers are killed',
  act: (site, { ms }) => site.restartEngine(undefined, ms) }, { title: 'the disks of NATS are wiped',
  isForgetting: true, act: (site) => site.wipe() }, { title: 'NATS is restored from a backup of before the rollout',
  isForgetting: true, act: (site) => site.restore() }, { title: 'NATS is restored from a backup of a moment ago',
  isForgetting: true, async act (site, { ms }) {
  await site.copyDisks()
  await wait(ms)
  await site.restore()
} }, { title: 'a server is killed', async act ({ nats }, { index, ms }) {
  await nats.servers[index].kill()
  await wait(ms)
  await nats.servers[index].start()
} }, { title: 'a server is cut off from the others', async act ({ nats }, { index, ms }) {
  nats.cut(index)
  await wait(ms)
  nats.mend(index)
} }, { title: 'the servers are frozen', async act ({ nats }, { ms }) {
  for (const server of nats.servers) server.signal('SIGSTOP')
  await wait(ms)
  for (const server of nats.servers) server.signal('SIGCONT')
} }, { title: 'the master of a host is killed', isKilling: true, act: (_, { host }) => host.loseMaster() }, {
  title: 'a host is killed',
  isKilling: true,
  isSilencing: true,
  act: (_, { host, ms }) => host.crash(ms)
}, { title: 'a host is frozen', isSilencing: true, async act (_, { host, ms }) {
  host.signal('SIGSTOP')
  await wait(ms)
  host.signal('SIGCONT')
} }, { title: 'a host is cut off from the servers', isSilencing: true, async act (_, { host, ms }) {
  host.cut()
  await wait(ms)
  host.mend()
} }, { title: 'the messages of a host take half a second', async act (_, { host, ms }) {
  host.slow(500)
  await wait(ms)
  host.slow(0)
} }]
