import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { get } from '../support/asking.ts'
import { runCliHere } from '../support/cli-here.ts'
import { runCli } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost, type Host } from '../support/host.ts'
import { openFreshConnections } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import type { AppView } from '../../server/host/api-apps.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/** @returns an app of the host that answers with a variable of its shell, and one of its config file */
async function addApp (host: Host, name: string, flags: object) {
  const [cwd, port] = [tempFolder(), await freePort()]
  writeFileSync(path.join(cwd, 'app.js'),
    `require('node:http').createServer((_, answer) => answer.end(process.env.SHOP_KEY + process.env.APP_NAME)).listen(${port})`)
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify({ env: { APP_NAME: name } }))
  await host.add({ name, cwd, flags: { entry: 'app.js', workers: '1', ...flags },
    env: { PATH: process.env.PATH, SHOP_KEY: 'before' } })
  return { name, dataDir: path.join(cwd, '.clusterdeck'), url: `http://127.0.0.1:${port}/` }
}

const doRun = (apps: Record<string, AppView>) =>
  ['shop', 'mail'].every((name) =>
    apps[name].state === 'running' && apps[name].workers?.ready === apps[name].workers?.desired
  )

/** The histories of the host and of its apps, oldest first. */
async function historiesOf (host: Host) {
  const histories = ['/host', '/apps/shop', '/apps/mail'].map((where) =>
    host.request<{ items: DeckEvent[] }>(`${where}/events?limit=200${where === '/host' ? '&own=true' : ''}`)
  )
  return (await Promise.all(histories)).map(({ items }) => items.reverse())
}

test('a host under traffic is backed up; restored into empty folders, it goes on with the same apps, releases, scale, histories and tokens', async (t) => {
  const host = await startHost(t)
  const apps = [await addApp(host, 'shop', {}), await addApp(host, 'mail', { releasesMode: 'folder' })]
  await host.untilApps(doRun)
  await host.put('/apps/shop/scale', { workers: 2 })
  const { token: bearer } = await host.post('/tokens', { name: 'ci', role: 'viewer' })
  await host.untilApps((now) => doRun(now) && now.shop.workers?.ready === 2)
  const env = { CLUSTERDECK_HOST_DIR: host.folder }
  const file = path.join(tempFolder(), 'host.tgz')
  const before = await historiesOf(host)
  const loads = apps.map(({ url }) => openFreshConnections(t, url, { perSecond: 20 }))
  const made = await runCli(['backup', file], { env })
  assert.deepEqual([made.code, made.stderr], [0, ''])
  for (const load of loads) {
    await load.untilAnswered(1)
    await load.checkNoneLost()
  }

  const refused = await runCliHere(['restore', file, '--force'], { env })
  assert.match(refused.stderr, /the host \(pid \d+\) runs: first run "clusterdeck down --all"\n$/)
  const looked = await runCliHere(['restore', file, '--dry-run'], { env })
  assert.match(looked.stdout, /it would be refused: the host \(pid \d+\) runs/)
  await host.stop()
  for (const folder of [host.folder, ...apps.map(({ dataDir }) => dataDir)]) rmSync(folder, { recursive: true })
  const restored = await runCliHere(['restore', file, '--update-env'], { env: { ...env, SHOP_KEY: 'after' } })
  assert.deepEqual([restored.code, restored.stderr], [0, ''])
  // The copy of its release was in the data folder.
  assert.match(restored.stdout, /^missing here, of mail: .*\/releases\/r1\/app\.js$/m)
  assert.match(restored.stdout, /^1 token will be valid again/m)

  const next = await startHost(t, { folder: host.folder })
  await next.untilApps((now) => doRun(now) && now.shop.workers?.ready === 2)
  const after = await historiesOf(next)
  for (const [index, events] of before.entries()) assert.deepEqual(after[index].slice(0, events.length), events)
  const { status, body } = await next.api('/apps', { bearer })
  assert.deepEqual([status, body.items?.map(({ name, release }) => [name, release])], [200, [['mail', 'r2'], ['shop',
    'r1']]])
  for (const { url, name } of apps) assert.equal(await get(url), `after${name}`)
})
