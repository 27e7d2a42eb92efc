import assert from 'node:assert/strict'
import { readFileSync, realpathSync } from 'node:fs'
import { rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { openSqlite } from '../../db/sqlite.ts'
import { identifyProcess, isAlive } from '../../server/system/process-identity.ts'
import { above } from '../support/event-log.ts'
import { runCliHere } from '../support/cli-here.ts'
import { type Deck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { serveHttp } from '../support/http-server.ts'
import { createInstallation } from '../support/install.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { countDescriptors, statusOf } from '../support/process-figures.ts'
import { until } from '../support/until.ts'
import type { DeckClient } from '../support/deck-client.ts'

describe('upgrade in place', () => {
  test('changes to the installed version under load: no request fails, the history tells it in order, and alerts that wait are delivered before the old master ends', async (t) => {
    const { cli, install } = createInstallation()
    const { config, delivered } = await startSlowReceiver(t, ['worker.orphaned', 'master.stopped:upgrade'])
    const deck = await startReady(t, 'answers-with-pid.js', { cli, flags: ['--config', config] })
    const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
    const kept = hammer(t, await deck.appUrl(), { connections: 8 })
    await install('1.1.0')
    const upgraded = upgrade(deck, '--wait', '--note', 'the autumn release')
    await deck.meetNext()
    assert.deepEqual(await upgraded, { code: 0,
      stdout: `upgraded to clusterdeck 1.1.0 on Node ${process.version} (pid ${deck.masterPid})\n`,
      stderr: 'upgrade started: the next master starts its workers\n' })
    const { workers, master, release } = await deck.until({ ready: 2 })
    for (const load of [fresh, kept]) await load.checkNoneLost()
    assert.deepEqual([master.version, release.id, workers.map(({ id }) => id)], ['1.1.0', 'r1', [3, 4]])

    const events = (await deck.history('limit=1000')).reverse()
    const told = events.slice(events.findIndex(({ type }) => type === 'master.upgrading'))
    assert.deepEqual(told.filter(({ type }) => type.startsWith('master.')).map(({ type, cause }) => [type, cause]), [[
      'master.upgrading',
      null
    ], ['master.stopped', 'upgrade'], ['master.started', null], ['master.upgraded', null]])
    assert.match(String(told[0].message), /the autumn release/)
    assert.equal(told.at(-1)?.type, 'worker.exited')
    assert.equal(events.find(({ type }) => type === 'master.upgraded')?.message, 'clusterdeck 1.0.0 → 1.1.0')
    assert.deepEqual(
      told.filter(({ type }) => type === 'worker.exited').map(({ worker, cause, code }) => [worker, cause, code])
        .sort(),
      [[1, 'upgrade', 0], [2, 'upgrade', 0]]
    )
    assert.deepEqual(told.filter(({ type }) => type === 'worker.ready').map(({ worker }) => worker).sort(), [3, 4])
    const times = events.map(({ at }) => at)
    assert.deepEqual(times, [...times].sort(), 'in the order of time')
    await until(() => delivered.includes('master.stopped'), 'the end of the old master to be told')
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')

    await t.test(
      'the old master dies while the next one starts: that one takes over, and the workers of an upgrade outlive their master as well',
      { skip: rareOnly },
      async (t) => {
        const before = await deck.until({ ready: 2 })
        const serving = before.workers.map(idOf)
        const expected = [1, 2].map((n) => Math.max(...serving) + n)
        const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
        assert.equal((await deck.post('/upgrade')).status, 202)
        await deck.untilEvent('worker.forked', { worker: expected[0] })
        await deck.loseMaster()
        const { workers } = await deck.until({ ready: 2 })
        await fresh.checkNoneLost()
        assert.deepEqual(workers.map(idOf), expected)
        const events = (await deck.history('limit=1000')).reverse().filter(({ id }) => id > before.lastEventId)
        assert.deepEqual(
          events.filter(({ type }) => type === 'master.stopped').map(({ cause, signal }) => [cause, signal]),
          [['master-lost', 'SIGKILL']]
        )
        for (const worker of expected) {
          assert.deepEqual(events.filter((event) => event.worker === worker).map(({ type }) => type), ['worker.forked',
            'worker.online', 'worker.listening', 'worker.ready'])
        }
        for (const type of ['worker.orphaned', 'worker.exited']) {
          assert.deepEqual(
            events.filter((event) => event.type === type).map(({ worker, cause }) => [worker, cause]).sort(),
            serving.map((id: number) => [id, 'master-lost']),
            type
          )
        }
      }
    )

    await t.test('the keeper dies meanwhile: the next master goes, the old one goes on', async () => {
      const before = await deck.until({ ready: 2 })
      t.after(() => process.kill(deck.masterPid, 'SIGTERM'))
      await deck.post('/upgrade')
      deck.signal('SIGKILL')
      const { message } = await deck.untilEvent('master.upgrade-failed')
      assert.match(String(message), /the keeper is gone/)
      const after = await deck.until({ ready: 2 })
      assert.deepEqual([after.master.pid, after.workers.map(idOf)], [before.master.pid, before.workers.map(idOf)])
    })
  })

  const FAULTS = [['whose workers do not boot', { 'workers/boot.ts': 'process.exit(7)' },
    /^worker 2 \(slot 1\) exited with code 7 before it was ready$/], ['that does not even load', {
    'server/host/master.ts': 'export function startHost () {}\nthrow new Error("not today")'
  }, /^not today$/, true], ['whose packages are not installed', { node_modules: null },
    /^Node v\S+ cannot load better-sqlite3 \(with this Node run "npm ci" in \/.+\/1\.1\.2\/\): it is not installed/,
    true], ['that refuses the configuration', { 'server/config/config.ts': refusingConfig() },
    /^workers: expected a bird$/, true], ['that is older than the history', { 'db/migrations/001-schema.sql': null },
    /from a newer clusterdeck$/, true]] as const

  test('that comes to nothing: the old master goes on as if nothing had been', async (t) => {
    const { cli, install } = createInstallation()
    const deck = await startReady(t, 'answers-with-pid.js', { cli, workers: 1 })
    for (const [index, [what, broken, reason, isRare]] of FAULTS.entries()) {
      await t.test(`to a version ${what}`, { skip: isRare && rareOnly }, async (t) => {
        const before = await deck.until({ ready: 1 })
        const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
        await install(`1.1.${index}`, broken)
        const { code, stderr } = await upgrade(deck, '--wait')
        assert.equal(code, 1)
        const failed = await deck.untilEvent('master.upgrade-failed', { id: above(before.lastEventId) })
        assert.match(String(failed.message), reason)
        assert.ok(stderr.endsWith(`clusterdeck: the upgrade failed: ${failed.message}\n`), stderr)
        const after = await deck.until({ ready: 1 })
        assert.deepEqual([after.master.pid, after.master.version, after.upgrade], [before.master.pid, '1.0.0', null])
        assert.deepEqual(after.workers.map(idOf), before.workers.map(idOf))
        await fresh.checkNoneLost()
      })
    }
    await deck.stop()
    await assertNothingLeft(deck)
  })

  rareTest('whose first worker serves already, while the second one is waited for', async (t) => {
    const gate = path.join(tempFolder(), 'gate')
    const deck = await startReady(t, 'waits-at-the-gate.js', { env: { GATE: gate } })
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await t.test(`the next master gets ${signal}: that worker drains, and its end is on record`, async (t) => {
        const before = await deck.until({ ready: 2 })
        const newest = Math.max(...before.workers.map(idOf))
        const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
        const descriptors = countDescriptors(deck.child.pid)
        const { pid } = await upgradeToTheGate(deck, gate)
        process.kill(statusOf(Number(pid), 'PPid'), signal)
        const failed = await deck.untilEvent('master.upgrade-failed', { id: above(before.lastEventId) })
        assert.match(String(failed.message), signal === 'SIGKILL' ? /\(SIGKILL\)$/ : /^it was told to stop$/)
        for (const worker of [newest + 1, newest + 2])
          assert.equal((await deck.untilEvent('worker.exited', { worker })).cause, 'rollback')
        const after = await deck.until({ ready: 2 })
        assert.deepEqual(after.workers.map(idOf), before.workers.map(idOf))
        await fresh.checkNoneLost()
        assert.equal(countDescriptors(deck.child.pid), descriptors,
          'the keeper does not go on holding what only the next master had bound')
        await rm(gate)
        assert.equal((await deck.rollout('restart')).state, 'succeeded')
        assert.deepEqual((await deck.until({ ready: 2 })).workers.map(idOf), [newest + 3, newest + 4],
          'ids go on without a gap')
      })
    }
    await t.test('the old one is told to stop: both end at once', async () => {
      await upgradeToTheGate(deck, gate)
      deck.signal('SIGTERM')
      assert.deepEqual(await deck.exited, { code: 0, signal: null })
      await assertNothingLeft(deck)
    })
  })

  rareTest(
    'to a program that there is not is refused; while one runs nothing else begins, and a stop ends both masters',
    async (t) => {
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1 })
      const { status, body } = await deck.post('/upgrade', { execPath: '/no/such/node' })
      assert.deepEqual([status, body.detail], [422,
        'execPath: expected a program of this user that can be executed, received "/no/such/node" (ENOENT)'])
      const link = path.join(tempFolder(), 'current')
      await symlink(process.execPath, link)
      assert.equal((await deck.post('/upgrade', { execPath: link })).status, 202)
      const { detail } = await deck.untilEvent('master.upgrading')
      assert.deepEqual(detail, { execPath: realpathSync(process.execPath) },
        'what was looked at, wherever the link leads by the next start')
      for (const [call, init] of [['/upgrade', { method: 'POST' }], ['/rollouts', { method: 'POST',
        body: '{"kind": "restart"}' }], ['/scale', { method: 'PUT', body: '{"workers": 3}' }], ['/workers/1/restart', {
        method: 'POST'
      }]] as [string, RequestInit][]) {
        const { status, body } = await deck.api(call, init)
        assert.deepEqual([call, status, body.code], [call, 409, 'upgrade-running'])
      }
      deck.signal('SIGTERM')
      assert.deepEqual(await deck.exited, { code: 0, signal: null })
      await assertNothingLeft(deck)
    }
  )
})

const idOf = ({ id }: { id: number }) => id

/** Every process of the history has ended, and every end is on record. */
async function assertNothingLeft ({ folder }: Deck) {
  const db = openSqlite(path.join(folder, 'history.db'), { readonly: true })
  const pids = (type: string) => db.prepare('SELECT pid FROM events WHERE type = ? ORDER BY pid').pluck().all(type)
  const [forked, exited] = [pids('worker.forked'), pids('worker.exited')]
  db.close()
  assert.deepEqual(exited, forked)
  assert.deepEqual(forked.filter((pid) => isAlive(identifyProcess(Number(pid)))), [])
}

/**
 * Takes its time for each delivery. `events`: that are delivered there. Returns a configuration file, and the types of
 * what has arrived.
 */
async function startSlowReceiver (t: TestContext, events: string[]): Promise<{ config: string, delivered: string[] }> {
  const delivered: string[] = []
  const { url } = await serveHttp(t, async (request, response) => {
    const { event } = JSON.parse(String(await buffer(request)))
    setTimeout(() => response.end(() => delivered.push(event.type)), 200)
  })
  const config = path.join(tempFolder(), 'clusterdeck.config.json')
  await writeFile(config,
    JSON.stringify({ alerts: [{ kind: 'webhook', url, secret: 'only between the two of us', events }] }))
  return { config, delivered }
}

/** @returns the first worker of the next master, which is ready */
async function upgradeToTheGate (deck: Deck, gate: string) {
  const { lastEventId } = await deck.status()
  await writeFile(gate, '')
  await deck.post('/upgrade')
  return await deck.untilEvent('worker.ready', { id: above(lastEventId) })
}

async function upgrade (deck: DeckClient, ...flags: string[]) {
  return await runCliHere(['upgrade', '--data-dir', deck.folder, ...flags], { cwd: path.dirname(deck.folder) })
}

/** A version of it that takes neither what has run nor what is configured. */
function refusingConfig () {
  const text = readFileSync(new URL('../../server/config/config.ts', import.meta.url), 'utf8')
  return text.replace('export async function restoredConfig', `export async function restoredConfig () {
    return null
  }
  async function restores`).replace('export async function loadConfig', `export async function loadConfig () {
    throw new DeckError('invalid-config', 'workers: expected a bird')
  }
  async function loads`)
}
