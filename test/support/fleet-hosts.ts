import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { get } from './asking.ts'
import { deploysIn } from './fleet.ts'
import { tempFolder } from './folder.ts'
import { startHost } from './host.ts'
import { untilFound } from './until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'
import type { HostFleet } from '../../server/fleet/api-answers.ts'
import type { TestOwner } from './deck.ts'

const PATIENCE_MS = 120_000

/** Hosts of several apps that are members of one fleet. */
type FleetHost = Awaited<ReturnType<typeof startFleetHost>>

export async function startFleetHost (t: TestOwner,
  { name, servers, apps }: { name: string, servers: string, apps: readonly string[] })
{
  const host = await startHost(t, {
    flags: ['--fleet', servers, '--fleet-name', 'test', '--fleet-member', name, '--fleet-accept', 'operate']
  })
  const root = tempFolder()
  const deploys = Object.fromEntries(
    apps.map((app) => [app, deploysIn(path.join(root, app), path.join(root, `${app}.held`))])
  )
  for (const app of apps) {
    const cwd = path.join(root, app)
    mkdirSync(path.join(cwd, 'pushed'), { recursive: true })
    deploys[app].put('v1')
    await host.add({ name: app, cwd,
      flags: { entry: 'app.js', workers: '1', releasesMode: 'folder', releasesRoot: path.join(cwd, 'pushed') },
      env: { PATH: process.env.PATH } })
  }
  const running = await host.untilApps((all) =>
    apps.every((app) => all[app]?.state === 'running' && all[app].addresses.length > 0)
  )
  return {
    ...host,
    name,
    urls: Object.fromEntries(apps.map((app) => [app, running[app].addresses[0]])) as Record<string, string>,

    put: (app: string, version: string, how?: { isBad?: boolean }) => deploys[app].put(version, how),
    hold: (app: string) => deploys[app].hold(),
    letGo: (app: string) => deploys[app].letGo(),

    /** Which version serves. */
    version: (app: string): Promise<string> => get(running[app].addresses[0]),

    /** @returns of its workers */
    async pids (app: string) {
      const { workers } = await host.request(`/apps/${app}/status`)
      return workers.map(({ pid }) => pid)
    },

    /** @returns the rollout */
    begin: (app: string, wanted: object = {}) =>
      host.request(`/apps/${app}/fleet/rollout`, { method: 'POST', body: { kind: 'deploy', ...wanted } }),

    /** @returns what the host knows of the app in its fleet */
    untilFleet (app: string, isSo: (fleet: Fleet) => unknown): Promise<Fleet> {
      let body: Fleet | null = null
      return untilFound(async () => {
        const found = await host.api(`/apps/${app}/fleet`).catch(() => null)
        body = found?.body ?? null
        return found?.status === 200 && body && isSo(body) ? body : null
      }, () => `the fleet of ${app} on ${name}: ${JSON.stringify(body?.rollout ?? body)}`, { patienceMs: PATIENCE_MS })
    },

    /** @returns all hosts as this one knows them */
    untilHosts: (isSo: (fleet: HostFleet) => unknown): Promise<HostFleet> =>
      untilFound(async () => {
        const found = await host.api('/host/fleet').catch(() => null)
        return found?.status === 200 && isSo(found.body) ? found.body : null
      }, () => `the hosts of the fleet on ${name}`, { patienceMs: PATIENCE_MS })
  }
}

/** `apps`: of each host, by its name. Returns once each sees all others with all of their apps. */
export async function startFleetHosts (t: TestOwner, servers: string,
  apps: Record<string, readonly string[]>): Promise<FleetHost[]>
{
  const hosts = []
  // Side by side they would take each other's time to start.
  for (const [name, own] of Object.entries(apps)) hosts.push(await startFleetHost(t, { name, servers, apps: own }))
  const all = Object.entries(apps).map(([name, own]) => `${name}: ${[...own].sort().join(' ')}`)
  for (const host of hosts) {
    await host.untilHosts(({ members }) => {
      const seen = members.filter((each) => !each.isSilent && each.apps.every(({ state }) => state === 'running'))
      return all.every((text) =>
        seen.some((each) => `${each.member}: ${each.apps.map(({ app }) => app).join(' ')}` === text)
      )
    })
  }
  return hosts
}
