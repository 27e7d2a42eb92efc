import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { get } from './asking.js'
import { writeRelease } from './fleet.js'
import { tempFolder } from './folder.js'
import { startHost } from './host.js'
import { untilFound } from './until.js'

const PATIENCE_MS = 120_000

/**
 * Hosts of several apps that are members of one fleet.
 * @typedef {Awaited<ReturnType<typeof startFleetHost>>} FleetHost
 */

/**
 * @param {import('./deck.js').TestOwner} t
 * @param {{ name: string, servers: string, apps: readonly string[] }} options
 */
export async function startFleetHost (t, { name, servers, apps }) {
  const host = await startHost(t, { flags: ['--fleet', servers, '--fleet-name', 'test', '--fleet-member', name, '--fleet-accept', 'operate'] })
  const root = tempFolder()
  const heldBy = (/** @type {string} */ app) => path.join(root, `${app}.held`)
  for (const app of apps) {
    const cwd = path.join(root, app)
    mkdirSync(path.join(cwd, 'pushed'), { recursive: true })
    writeRelease(cwd, 'v1', { heldBy: heldBy(app) })
    await host.add({ name: app, cwd, flags: { entry: 'app.js', workers: '1', releasesMode: 'folder', releasesRoot: path.join(cwd, 'pushed') }, env: { PATH: process.env.PATH } })
  }
  const running = await host.untilApps((all) => apps.every((app) => all[app]?.state === 'running' && all[app].addresses.length > 0))
  return {
    ...host,
    name,
    urls: /** @type {Record<string, string>} */ (Object.fromEntries(apps.map((app) => [app, running[app].addresses[0]]))),

    /** What a deploy of the app finds from now on. @param {string} app @param {string} version @param {{ isBad?: boolean }} [how] */
    put: (app, version, how) => writeRelease(path.join(root, app), version, { ...how, heldBy: heldBy(app) }),

    /** No worker of the app gets ready from now on. @param {string} app */
    hold (app) { writeFileSync(heldBy(app), '') },

    /** @param {string} app */
    letGo (app) { rmSync(heldBy(app)) },

    /** Which version serves. @param {string} app @returns {Promise<string>} */
    version: (app) => get(running[app].addresses[0]),

    /** @param {string} app @returns {Promise<number[]>} of its workers */
    async pids (app) {
      const { workers } = await host.request(`/apps/${app}/status`)
      return workers.map((/** @type {any} */ { pid }) => pid)
    },

    /** @param {string} app @param {object} [wanted] @returns {Promise<any>} the rollout */
    begin: (app, wanted = {}) => host.request(`/apps/${app}/fleet/rollout`, { method: 'POST', body: { kind: 'deploy', ...wanted } }),

    /** @param {string} app @param {(fleet: any) => unknown} isSo @returns {Promise<any>} what the host knows of the app in its fleet */
    untilFleet (app, isSo) {
      /** @type {any} */
      let body = null
      return untilFound(async () => {
        const found = await host.api(`/apps/${app}/fleet`).catch(() => null)
        body = found?.body
        return found?.status === 200 && isSo(body) ? body : null
      }, () => `the fleet of ${app} on ${name}: ${JSON.stringify(body?.rollout ?? body)}`, { patienceMs: PATIENCE_MS })
    },

    /** @param {(fleet: any) => unknown} isSo @returns {Promise<any>} all hosts as this one knows them */
    untilHosts: (isSo) => untilFound(async () => {
      const found = await host.api('/host/fleet').catch(() => null)
      return found?.status === 200 && isSo(found.body) ? found.body : null
    }, () => `the hosts of the fleet on ${name}`, { patienceMs: PATIENCE_MS })
  }
}

/**
 * @param {import('./deck.js').TestOwner} t @param {string} servers @param {Record<string, readonly string[]>} apps  of each host, by its name
 * @returns {Promise<FleetHost[]>} once each sees all others with all of their apps
 */
export async function startFleetHosts (t, servers, apps) {
  const hosts = []
  // Side by side they would take each other's time to start.
  for (const [name, own] of Object.entries(apps)) hosts.push(await startFleetHost(t, { name, servers, apps: own }))
  const all = Object.entries(apps).map(([name, own]) => `${name}: ${[...own].sort().join(' ')}`)
  for (const host of hosts) {
    await host.untilHosts(({ members }) => {
      const seen = members.filter((/** @type {any} */ each) => !each.isSilent && each.apps.every((/** @type {any} */ { state }) => state === 'running'))
      return all.every((text) => seen.some((/** @type {any} */ each) => `${each.member}: ${each.apps.map((/** @type {any} */ { app }) => app).join(' ')}` === text))
    })
  }
  return hosts
}
