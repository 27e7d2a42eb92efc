import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe } from 'node:test'
import { FIXTURES, type TestOwner } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { openFreshConnections } from '../support/load.ts'
import { rareTest } from '../support/rare.ts'
import { until, untilFound } from '../support/until.ts'
import type { AppView } from '../../server/host/api-apps.ts'

/** What is told of masters that follow one another, the first of which has ended for this. */
const followed = (cause: string) => ['started', 'upgrading', `stopped ${cause}`, 'started', 'upgraded']
const FAILURE = /^once: worker \d+ \(slot 1\) exited with code 1 before it was ready/

describe('the upgrade of a host in place', () => {
  rareTest(
    'an app that is added while the next master waits for another one is kept: its worker serves on, and the next one has its socket',
    async (t) => {
      const host = await openHost(t)
      await host.add('slow', 'waits-at-the-gate.js', { workers: '2' })
      await host.untilUp('slow')
      await host.closeGate()
      await host.upgrade('/host/upgrade', {})
      await host.untilReady('slow', 3)
      await host.add('late', 'answers-with-pid.js')
      const { late } = await host.untilUp('late')
      const load = host.load(late)
      const pids = await host.workersOf('late')
      await host.openGate()
      await host.meetNext()
      const after = await host.untilUp('late', 'slow')
      await load.untilAnswered(10)
      await load.checkNoneLost()
      assert.deepEqual(after.late.addresses, late.addresses)
      assert.ok((await host.workersOf('late')).every((pid) => !pids.includes(pid)))
      const exited = (await host.history('late')).filter(({ type }) => type === 'worker.exited')
      assert.deepEqual(exited.map(({ cause }) => cause), ['upgrade'])
    }
  )

  rareTest(
    'goes on where the old master is killed meanwhile: the next one takes over all apps, whether they serve already or not',
    async (t) => {
      const host = await openHost(t)
      await host.add('shop', 'answers-with-pid.js')
      await host.add('slow', 'waits-at-the-gate.js', { workers: '2' })
      const { shop } = await host.untilUp('shop', 'slow')
      const load = host.load(shop)
      await host.closeGate()
      await host.upgrade('/apps/shop/upgrade')
      await host.untilReady('shop', 2)
      await host.untilReady('slow', 3)
      process.kill(host.about.pid, 'SIGKILL')
      await host.meetNext()
      await host.openGate()
      await host.untilUp('shop', 'slow')
      await load.untilAnswered(10)
      await load.checkNoneLost()
      for (const name of ['shop', 'slow']) assert.deepEqual(await host.mastersOf(name), followed('master-lost'), name)
    }
  )

  rareTest(
    'comes to nothing where one app cannot be served by the next master: all go on as they were, and each knows why',
    async (t) => {
      const host = await openHost(t)
      await host.add('shop', 'answers-with-pid.js')
      await host.add('once', 'serves-at-its-first-start.js')
      const { shop } = await host.untilUp('shop', 'once')
      const load = host.load(shop)
      const pids = await host.workersOf('shop', 'once')
      await host.upgrade('/apps/shop/upgrade')
      for (const name of ['shop', 'once']) {
        const failed = await untilFound(
          async () => (await host.history(name)).find(({ type }) => type === 'master.upgrade-failed'),
          `the failure to be told by ${name}`
        )
        assert.match(String(failed.message), FAILURE)
      }
      const { upgrade, upgradeFailure, pid } = await host.request('/host')
      assert.deepEqual([upgrade, pid], [null, host.about.pid])
      assert.match(String(upgradeFailure?.message), FAILURE)
      await host.untilUp('shop', 'once')
      assert.deepEqual(await host.workersOf('shop', 'once'), pids)
      await load.untilAnswered(10)
      await load.checkNoneLost()
      await t.test('and one that has something against it is named, and nothing begins', async () => {
        await writeFile(`${host.gate}.waits`, '')
        const { id } = await host.post('/apps/once/rollouts', { kind: 'restart' })
        const { status, body } = await host.api('/host/upgrade', { method: 'POST', body: {} })
        assert.deepEqual([status, body.code, body.detail], [409, 'rollout-running',
          `once: rollout ${id} (restart) is running`])
        assert.equal((await host.history('shop')).filter(({ type }) => type === 'master.upgrading').length, 1)
      })
    }
  )
})

/** A host, a gate at which some apps wait, and what an upgrade may change of the host. */
async function openHost (t: TestOwner) {
  const host = await startHost(t)
  const gate = path.join(tempFolder(), 'gate')
  /** @returns its events, oldest first */
  const history = async (name: string) => (await host.request(`/apps/${name}/events?limit=200`)).items.reverse()
  const inWords = ({ type, cause }: { type: string, cause: string | null }) =>
    [type.slice('master.'.length), cause].filter(Boolean).join(' ')

  return {
    ...host,
    history,
    gate,
    closeGate: () => writeFile(gate, ''),
    openGate: () => rm(gate),

    /** Waits until the first master has been followed by another one. */
    meetNext: () => host.untilNext(host.about.pid),

    async upgrade (where: string, body?: object) {
      assert.equal((await host.api(where, { method: 'POST', body })).status, 202)
    },

    add: (name: string, fixture: string, flags: Record<string, string> = {}) =>
      host.add({ name, cwd: tempFolder(), flags: { entry: path.join(FIXTURES, fixture), workers: '1', ...flags },
        env: { PATH: String(process.env.PATH), GATE: gate } }),

    untilUp: (...names: string[]) => host.untilApps((apps) => names.every((name) => apps[name]?.state === 'running')),

    /** `count`: of its workers that have been ready until then, also those of the next master */
    untilReady: (name: string, count: number) =>
      until(async () => (await history(name)).filter(({ type }) => type === 'worker.ready').length === count,
        `a worker of the next master for ${name}`),

    load: ({ addresses: [address] }: AppView) => openFreshConnections(t, address, { perSecond: 20 }),

    /** @returns pids */
    async workersOf (...names: string[]) {
      const all = await Promise.all(names.map(async (name) => (await host.request(`/apps/${name}/status`)).workers))
      return all.flat().flatMap(({ state, pid }) => state === 'ready' ? pid ?? [] : [])
    },

    /** @returns what its history tells of its masters, but for a start that takes long */
    mastersOf: async (name: string): Promise<string[]> =>
      (await history(name)).filter(({ type }) => type.startsWith('master.') && type !== 'master.waiting').map(inWords)
  }
}
