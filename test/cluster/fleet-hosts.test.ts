import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startFleetHosts } from '../support/fleet-hosts.ts'
import { statesOf } from '../support/fleet-rollouts.ts'
import { openFreshConnections } from '../support/load.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { present } from '../support/present.ts'
import { rareOnly } from '../support/rare.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'

// Hosts of several apps in one fleet.

const skip = withoutNats
const ALL = ['mail', 'search', 'shop']
const THREE = Object.freeze({ 'web-1': ALL, 'web-2': ALL, 'web-3': ALL })
const isOver = ({ rollout }: Pick<Fleet, 'rollout'>) =>
  rollout !== null && !['running', 'paused', 'rolling-back'].includes(rollout.state)

test(
  'one app is deployed over three hosts of three apps under load: no request fails, and the other apps are left alone',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const hosts = await startFleetHosts(t, nats.url, THREE)
    const [one, two] = hosts
    const others = hosts.flatMap((host) => ['mail', 'search'].map((app) => ({ host, app })))
    const before = await Promise.all(others.map(({ host, app }) => host.pids(app)))
    const loads = hosts.flatMap((host) => ALL.map((app) => openFreshConnections(t, host.urls[app], { perSecond: 5 })))
    for (const host of hosts) host.put('shop', 'v2')
    await one.begin('shop', { note: 'faster totals' })
    const rollout = present((await two.untilFleet('shop', isOver)).rollout)
    assert.deepEqual([rollout.app, rollout.state, statesOf(rollout)], ['shop', 'succeeded', ['web-1 succeeded',
      'web-2 succeeded', 'web-3 succeeded']])
    for (const host of hosts) assert.deepEqual([await host.version('shop'), await host.version('mail')], ['v2', 'v1'])
    assert.deepEqual(await Promise.all(others.map(({ host, app }) => host.pids(app))), before)
    assert.equal((await two.request('/apps/mail/fleet')).rollout, null)

    // A bad release goes back on the hosts that have it, while another app is restarted on all.
    one.put('shop', 'v3')
    two.put('shop', 'v3', { isBad: true })
    await one.begin('shop', { onFailure: 'rollback' })
    await two.begin('mail', { kind: 'restart' })
    const { rollout: bad } = await hosts[2].untilFleet('shop', (now) => now.rollout?.id === 2 && isOver(now))
    assert.deepEqual([bad?.state, statesOf(present(bad))], ['rolled-back', ['web-1 reverted', 'web-2 failed',
      'web-3 skipped']])
    const restart = present((await one.untilFleet('mail', isOver)).rollout)
    assert.deepEqual([restart.id, restart.app, restart.state], [1, 'mail', 'succeeded'])
    for (const host of hosts) assert.equal(await host.version('shop'), 'v2')
    for (const load of loads) assert.deepEqual((await load.stop()).failures, [])

    // Each app tells in its own history, and the fleet has both under the name of their app.
    const told = async (app: string) =>
      (await hosts[2].request(`/apps/${app}/events?member=*&type=fleet.*&limit=50`)).items.map(({ type }) => type)
    assert.deepEqual(await told('mail'), ['fleet.rollout-succeeded', 'fleet.rollout-started'])
    assert.ok((await told('shop')).includes('fleet.rollout-rolled-back'))
  }
)

test('a host without the app, and one where it is stopped, take no part; each host shows all hosts with their apps', {
  skip: skip || rareOnly
}, async (t) => {
  const nats = await startNats(t)
  const [one, two, three] = await startFleetHosts(t, nats.url, { 'web-1': ['mail', 'shop'], 'web-2': ['mail', 'shop'],
    'web-3': ['mail'] })
  for (const path of ['stop', 'stop?now=true']) {
    const refused = await one.api(`/apps/shop/fleet/members/web-2/api/${path}`, { method: 'POST' })
    assert.deepEqual([refused.status, refused.body.detail], [403, '/stop of web-2: sign in on web-2 itself'])
  }
  assert.equal((await two.request('/apps/shop')).state, 'running')
  await two.request('/apps/shop/stop', { method: 'POST' })
  const { members } = await three.untilHosts(({ members: seen }) => seen[1].apps[1].state === 'stopped')
  assert.deepEqual(
    members.map(({ member, apps }) => `${member}: ${apps.map(({ app, state }) => `${app} ${state}`).join(', ')}`),
    ['web-1: mail running, shop running', 'web-2: mail running, shop stopped', 'web-3: mail running']
  )
  await one.begin('shop', { kind: 'restart' })
  const rollout = present((await one.untilFleet('shop', isOver)).rollout)
  assert.deepEqual([rollout.state, statesOf(rollout), rollout.absent], ['succeeded', ['web-1 succeeded'], ['web-2']])
  assert.deepEqual((await three.api('/apps/shop/fleet')).status, 404)
  const asked = await one.api('/apps/shop/fleet/members/web-3/api/status')
  assert.deepEqual([asked.status, asked.body.detail], [404, 'web-3 has no app "shop"'])
  // A call goes to the app that is meant, and its answer names its own paths.
  const restarted = await one.request('/apps/mail/fleet/members/web-3/api/rollouts', { method: 'POST',
    body: { kind: 'restart' } })
  assert.equal(restarted.kind, 'restart')
  const [event] = (await three.request('/apps/mail/events?type=rollout.started')).items
  assert.equal(event.actor, 'the owner\'s token on web-1')

  const env = { CLUSTERDECK_HOST_DIR: one.folder }
  const status = await runCliHere(['fleet'], { env, cwd: '/' })
  assert.match(status.stdout, /^fleet {5}test, this is web-1\n[^]*\nweb-2 +shop +Stopped +0\/0 /, status.stderr)
  const unclear = await runCliHere(['fleet', 'deploy'], { env, cwd: '/' })
  assert.deepEqual([unclear.code, unclear.stderr], [2,
    'clusterdeck: fleet deploy: expected --app with one of mail, shop, received none\n'])
  one.put('mail', 'v2')
  const deployed = await runCliHere(['fleet', 'deploy', '--app', 'mail', '--only', 'zone=b', '--wait'], { env,
    cwd: '/' })
  assert.match(deployed.stderr, /only: expected labels of an online member, received zone=b/)
  const restart = await runCliHere(['fleet', 'restart', '--app', 'mail', '--wait'], { env, cwd: '/' })
  assert.deepEqual([restart.code, restart.stdout], [0, 'rollout 1 of the fleet (restart) succeeded: 3 of 3 done\n'],
    restart.stderr)
})
