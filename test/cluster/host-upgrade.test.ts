import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe } from 'node:test'
import { openSqlite } from '../../db/sqlite.ts'
import { FIXTURES, type TestOwner } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { openFreshConnections } from '../support/load.ts'
import { rareTest } from '../support/rare.ts'
import { untilFound } from '../support/until.ts'
import type { AppView } from '../../server/api/apps.ts'

describe('the upgrade of a host in place', () => {
  rareTest(
    'changes the master of all apps that serve, and starts those that do not once it is the only one: no request fails',
    async (t) => {
      const host = await openHost(t)
      for (const name of ['shop', 'blog']) await host.add(name, 'answers-with-pid.js')
      await host.add('loops', 'throws-at-load.js')
      const before = await host.untilApps((apps) =>
        apps.shop.state === 'running' && apps.blog.state === 'running' && apps.loops.health?.tone === 'bad'
      )
      const loads = ['shop', 'blog'].map((name) =>
        openFreshConnections(t, before[name].addresses[0], { perSecond: 20 })
      )
      const pids = await host.workersOf(['shop', 'blog'])
      assert.equal((await host.api('/host/upgrade', { method: 'POST', body: { note: 'the autumn release' } })).status,
        202)
      await host.meetNext()
      const after = await host.untilApps((apps) =>
        apps.shop.state === 'running' && apps.blog.state === 'running' && apps.loops.health?.tone === 'bad'
      )
      for (const load of loads) await load.untilAnswered(20)
      assert.deepEqual((await Promise.all(loads.map((load) => load.stop()))).map(({ failures }) => failures), [[], []])
      assert.deepEqual([after.shop.addresses, after.blog.addresses], [before.shop.addresses, before.blog.addresses])
      assert.ok((await host.workersOf(['shop', 'blog'])).every((pid) => !pids.includes(pid)),
        'all of them have new workers')
      for (const name of ['shop', 'blog']) {
        const told = await host.mastersOf(name)
        assert.deepEqual(told, [['master.started', null], ['master.upgrading', null], ['master.stopped', 'upgrade'], [
          'master.started',
          null
        ], ['master.upgraded', null]], name)
      }
      assert.deepEqual(host.ownEvents(), [['master.started', null], ['master.upgrading', null], ['master.stopped',
        'upgrade'], ['master.started', null], ['master.upgraded', null]])
    }
  )

  rareTest(
    'an app that is added while the next master waits for another one is kept: its worker serves on, and the next one has its socket',
    async (t) => {
      const gate = path.join(tempFolder(), 'gate')
      const host = await openHost(t)
      await host.add('slow', 'waits-at-the-gate.js', { GATE: gate }, { workers: '2' })
      await host.untilApps(({ slow }) => slow.state === 'running')
      await writeFile(gate, '')
      assert.equal((await host.api('/host/upgrade', { method: 'POST', body: {} })).status, 202)
      await untilFound(
        async () => (await host.history('slow')).filter(({ type }) => type === 'worker.ready').length === 3,
        'the first worker of the next master'
      )
      await host.add('late', 'answers-with-pid.js')
      const { late } = await host.untilApps(({ late }) => late.state === 'running')
      const load = openFreshConnections(t, late.addresses[0], { perSecond: 20 })
      const pids = await host.workersOf(['late'])
      await rm(gate)
      await host.meetNext()
      const after = await host.untilApps(({ late, slow }) => late?.state === 'running' && slow.state === 'running')
      await load.untilAnswered(10)
      assert.deepEqual((await load.stop()).failures, [])
      assert.deepEqual(after.late.addresses, late.addresses)
      assert.ok((await host.workersOf(['late'])).every((pid) => !pids.includes(pid)))
      assert.deepEqual(
        (await host.history('late')).filter(({ type }) => type === 'worker.exited').map(({ cause }) => cause),
        ['upgrade']
      )
    }
  )

  rareTest(
    'goes on where the old master is killed meanwhile: the next one takes over all apps, whether they serve already or not',
    async (t) => {
      const gate = path.join(tempFolder(), 'gate')
      const host = await openHost(t)
      await host.add('shop', 'answers-with-pid.js')
      await host.add('slow', 'waits-at-the-gate.js', { GATE: gate }, { workers: '2' })
      const { shop } = await host.untilApps(({ shop, slow }) => shop?.state === 'running' && slow?.state === 'running')
      const load = openFreshConnections(t, shop.addresses[0], { perSecond: 20 })
      await writeFile(gate, '')
      assert.equal((await host.api('/apps/shop/upgrade', { method: 'POST' })).status, 202)
      for (const [name, ready] of [['shop', 2], ['slow', 3]] as const) {
        await untilFound(
          async () => (await host.history(name)).filter(({ type }) => type === 'worker.ready').length === ready,
          `a worker of the next master for ${name}`
        )
      }
      process.kill(host.about.pid, 'SIGKILL')
      await host.meetNext()
      await rm(gate)
      await host.untilApps(({ shop, slow }) => shop?.state === 'running' && slow?.state === 'running')
      await load.untilAnswered(10)
      assert.deepEqual((await load.stop()).failures, [])
      for (const name of ['shop', 'slow']) {
        const told = await host.mastersOf(name)
        assert.deepEqual(told, [['master.started', null], ['master.upgrading', null], ['master.stopped', 'master-lost'],
          ['master.started', null], ['master.upgraded', null]], name)
      }
    }
  )

  rareTest(
    'comes to nothing where one app cannot be served by the next master: all go on as they were, and each knows why',
    async (t) => {
      const gate = path.join(tempFolder(), 'gate')
      const host = await openHost(t)
      await host.add('shop', 'answers-with-pid.js')
      await host.add('once', 'serves-at-its-first-start.js', { GATE: gate })
      const isUp = (apps: Record<string, AppView>) => apps.shop?.state === 'running' && apps.once?.state === 'running'
      const before = await host.untilApps(isUp)
      const load = openFreshConnections(t, before.shop.addresses[0], { perSecond: 20 })
      const pids = await host.workersOf(['shop', 'once'])
      assert.equal((await host.api('/apps/shop/upgrade', { method: 'POST' })).status, 202)
      for (const name of ['shop', 'once']) {
        const failed = await untilFound(
          async () => (await host.history(name)).find(({ type }) => type === 'master.upgrade-failed'),
          `the failure to be told by ${name}`
        )
        assert.match(String(failed.message), /^once: worker \d+ \(slot 1\) exited with code 1 before it was ready/)
      }
      const { upgrade, upgradeFailure, pid } = await host.request('/host')
      assert.deepEqual([upgrade, pid], [null, host.about.pid])
      assert.match(String(upgradeFailure?.message),
        /^once: worker \d+ \(slot 1\) exited with code 1 before it was ready/)
      await host.untilApps(isUp)
      assert.deepEqual(await host.workersOf(['shop', 'once']), pids)
      await load.untilAnswered(10)
      assert.deepEqual((await load.stop()).failures, [])
      await t.test('and one that has something against it is named, and nothing begins', async () => {
        await writeFile(`${gate}.waits`, '')
        const { body: { id } } = await host.api('/apps/once/rollouts', { method: 'POST', body: { kind: 'restart' } })
        const { status, body } = await host.api('/host/upgrade', { method: 'POST', body: {} })
        assert.deepEqual([status, body.code, body.detail], [409, 'rollout-running',
          `once: rollout ${id} (restart) is running`])
        assert.equal((await host.history('shop')).filter(({ type }) => type === 'master.upgrading').length, 1)
      })
    }
  )
})

/** A host, and what an upgrade may change of it. */
async function openHost (t: TestOwner) {
  const host = await startHost(t)
  /** @returns its events, oldest first */
  const history = async (name: string) => (await host.request(`/apps/${name}/events?limit=200`)).items.reverse()

  return {
    ...host,
    history,

    /** Waits until the first master has been followed by another one. */
    meetNext: () => host.untilNext(host.about.pid),

    async add (name: string, fixture: string, variables: Record<string, string> = {},
      flags: Record<string, string> = {})
    {
      const order = { name, cwd: tempFolder(), flags: { entry: path.join(FIXTURES, fixture), workers: '1', ...flags },
        env: { PATH: String(process.env.PATH), ...variables } }
      const { status, body } = await host.api('/apps', { method: 'POST', body: order })
      assert.equal(status, 201, JSON.stringify(body))
    },

    async workersOf (names: string[]) {
      const all = await Promise.all(names.map(async (name) => (await host.request(`/apps/${name}/status`)).workers))
      return all.flat().flatMap(({ state, pid }) => state === 'ready' ? pid ?? [] : [])
    },

    /** @returns what its history tells of its masters, but for a start that takes long */
    async mastersOf (name: string): Promise<[string, string | null][]> {
      const told = (await history(name)).filter(({ type }) => type.startsWith('master.') && type !== 'master.waiting')
      return told.map(({ type, cause }) => [type, cause])
    },

    /** What the host itself has on record of its masters. */
    ownEvents () {
      const db = openSqlite(path.join(host.folder, 'history.db'), { readonly: true })
      try {
        return db.prepare('SELECT type, cause FROM events WHERE type LIKE \'master.%\' ORDER BY id').raw().all()
      } finally {
        db.close()
      }
    }
  }
}
