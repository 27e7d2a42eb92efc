import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { json } from 'node:stream/consumers'
import path from 'node:path'
import { describe, test } from 'node:test'
import { get } from '../support/asking.ts'
import { startHost, type Host } from '../support/host.ts'
import { serveHttp } from '../support/http-server.ts'
import { openFreshConnections } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { AppView } from '../../server/host/api-apps.ts'

const NAMES = ['shop', 'mail', 'jobs']

/** Adds an app with two workers that answers there with its name. Returns its folder. */
async function addApp (host: Host, name: string, port: number, more: object = {}): Promise<string> {
  return await host.addCode(name,
    `console.log('${name} begins'); require('node:http').createServer((_, response) => response.end('${name}')).listen(${port})`,
    { flags: { entry: 'app.js', workers: '2' }, ...more })
}

// What comes back where keeper and master are gone is of test/cluster/starts.test.ts.
describe('a host', { concurrency: 2 }, () => {
  test('its master is killed and upgraded under load: no request of any app fails, and each app has its own workers again', async (t) => {
    const host = await startHost(t)
    const ports = await Promise.all(NAMES.map(freePort))
    const urls = ports.map((port) => `http://127.0.0.1:${port}/`)
    for (const [index, name] of NAMES.entries()) await addApp(host, name, ports[index])
    await host.untilApps(doRun)
    const told: string[] = []
    const { url } = await serveHttp(t, async (request, response) => {
      told.push(Object(await json(request)).event.type)
      response.writeHead(204).end()
    })
    for (const name of NAMES)
      await host.post(`/apps/${name}/alerts`, { kind: 'webhook', url })
    const loads = urls.map((url) => openFreshConnections(t, url, { perSecond: 20 }))
    const before = await pidsOf(host)
    process.kill(host.about.pid, 'SIGKILL')
    const next = await host.untilNext(host.about.pid)
    await host.untilApps(doRun)
    assert.notDeepEqual(await pidsOf(host), before)
    assert.deepEqual(await noticesOf(host, '/host'), ['master-lost'], 'told once, by the host')
    for (const name of NAMES) assert.deepEqual(await noticesOf(host, `/apps/${name}`), [], name)
    await until(() => told.length > 0, 'the alert')
    assert.deepEqual(told, ['master.stopped'], 'to each receiver of the apps once')
    await assert.rejects(host.post('/apps/none/upgrade', {}), { code: 'not-found' })
    await host.post('/host/upgrade', {})
    await host.untilNext(next.pid)
    await host.untilApps(doRun)
    for (const name of NAMES) {
      const { items } = await host.request(`/apps/${name}/events?type=master.upgraded`)
      assert.equal(items.length, 1, name)
    }
    for (const load of loads) await load.checkNoneLost()
    for (const [index, url] of urls.entries()) assert.equal(await get(url), NAMES[index])
    await host.post('/apps/mail/stop', {})
    await host.untilApp('mail', ({ state }) => state === 'stopped')
    const { items: lines } = await host.request('/host/logs?app=mail&lines=1')
    assert.deepEqual(lines.map(({ app, text }) => [app, text]), [['mail', 'mail begins']])
    assert.deepEqual(await host.stop(), { code: 0, signal: null })
  })

  rareTest('an app goes on with the next master though the app that it depends on does not start any more',
    async (t) => {
      const host = await startHost(t)
      const shop = await addApp(host, 'shop', await freePort())
      await addApp(host, 'mail', await freePort(), { dependsOn: ['shop'] })
      await host.untilApps(doRun)
      writeFileSync(path.join(shop, 'app.js'), 'process.exit(1)')
      process.kill(host.about.pid, 'SIGKILL')
      await host.untilNext(host.about.pid)
      await host.untilApp('mail',
        ({ state, workers }) => state === 'running' && workers !== null && workers.ready === workers.desired)
      const readyPids = async () =>
        (await host.request('/apps/mail/workers')).items.flatMap(({ state, pid }) => state === 'ready' ? pid ?? [] : [])
      const before = await readyPids()
      process.kill(before[0], 'SIGKILL')
      await until(async () => (await readyPids()).filter((pid) => pid !== before[0]).length === before.length,
        'a worker in its place')
    })
})

/** Tells whether each that is to run has all of its workers */
function doRun (apps: Record<string, AppView>): boolean {
  return Object.values(apps).every(({ state, workers }) =>
    state === 'stopped' || (state === 'running' && workers !== null && workers.ready === workers.desired)
  )
}

async function noticesOf (host: Host, place: '/host' | `/apps/${string}`) {
  return (await host.request(`${place}/notices`)).items.map(({ kind }) => kind)
}

/** @returns of the workers, by app */
async function pidsOf (host: Host) {
  const found = await Promise.all(
    NAMES.map(async (name) => [name, (await host.request(`/apps/${name}/workers`)).items.map(({ pid }) => pid)])
  )
  return Object.fromEntries(found)
}
