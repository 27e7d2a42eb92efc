import assert from 'node:assert/strict'
import { existsSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fallbackFolders } from '../../server/system/fallback-folder.ts'
import { identifyProcess, isAlive } from '../../server/system/process-identity.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck, startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { openFreshConnections } from '../support/load.ts'
import { rareTest } from '../support/rare.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'

describe('a disk that takes nothing', { skip: lacksSmallDisk, concurrency: 2 }, () => {
  test('while it runs: workers and masters are replaced, and the history has all of it once there is room', async (t) => {
    const disk = smallDisk(t)
    const deck = await startDeck(t, 'answers-with-pid.js', { dataDir: path.join(disk.folder, 'data') })
    const { workers: [first] } = await deck.until({ ready: 2 })
    const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 30 })
    await fresh.untilAnswered(20)
    disk.fill()

    await fresh.whenIdle(() => {
      process.kill(first.pid, 'SIGKILL')
    })
    await deck.untilEvent('history.degraded')
    await deck.until({ ready: 2 })
    const { history } = await deck.status()
    assert.match(String(history.problem), /SQLITE_FULL|SQLITE_IOERR/)
    assert.ok(history.waiting > 0 && Date.parse(String(history.since)) <= Date.now() && history.lost === 0,
      JSON.stringify(history))
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const lost = [deck.masterPid]
    await deck.loseMaster()
    await deck.until({ ready: 2 })
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    lost.push(deck.masterPid)
    await deck.loseMaster()
    const { workers } = await deck.until({ ready: 2 })
    assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout, /^history {2}cannot be written: /m)

    disk.free()
    await deck.untilEvent('history.recovered')
    assert.equal((await deck.status()).history.problem, null)
    await fresh.checkNoneLost()

    const events = (await deck.history('limit=1000')).reverse()
    const of = (wanted: string) => events.filter(({ type }) => type === wanted)
    assert.equal(new Set(events.map(({ id }) => id)).size, events.length)
    assert.deepEqual(of('master.stopped').map(({ pid, cause }) => [pid, cause]),
      lost.map((pid) => [pid, 'master-lost']))
    assert.deepEqual(of('rollout.succeeded').map(({ detail }) => detail?.kind), ['restart', 'deploy'])
    const [forked, exited] = [of('worker.forked'), of('worker.exited')].map((some) =>
      some.map(({ worker }) => worker).sort((a, b) => Number(a) - Number(b))
    )
    assert.deepEqual([new Set(forked).size, new Set(exited).size], [forked.length, exited.length],
      'each begins and ends once')
    const open = forked.filter((worker) => !exited.includes(worker))
    assert.deepEqual(open, workers.map(({ id }) => id))
    assert.equal(of('worker.exited').find(({ worker }) => worker === first.id)?.cause, 'killed')

    await until(() => fallbackFolders(deck.folder).every((folder) => !existsSync(folder)),
      'nothing to be told of a master elsewhere any more')
    assert.ok(existsSync(path.join(deck.folder, 'master.json')))
  })

  rareTest('read-only from one moment to the next: the workers of a master that is lost then drain all the same',
    async (t) => {
      const disk = smallDisk(t)
      const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1, dataDir: path.join(disk.folder, 'data') })
      const { workers } = await deck.until({ ready: 1 })
      const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 30 })
      await fresh.untilAnswered(20)
      const { uncover } = disk.cover(deck.folder)
      t.after(uncover)
      await deck.loseMaster()
      t.after(() => rmSync(deck.place, { recursive: true, force: true }))
      const { workers: next } = await deck.until({ ready: 1 })
      assert.deepEqual(next.filter(({ pid }) => workers.some((old) => old.pid === pid)), [])
      await deck.untilStatus(() => workers.every(({ pid }) => !isAlive(identifyProcess(pid))),
        'the old workers to be gone')
      await fresh.checkNoneLost()
      assert.equal((await deck.rollout('restart')).state, 'succeeded')

      // What the folder says of a master that is long gone cannot be removed.
      await deck.stop()
      const again = await startReady(t, 'answers-with-pid.js', { workers: 1, dataDir: deck.folder })
      assert.equal((await again.history('type=master.stopped&cause=master-lost')).length, 1)
    })

  rareTest('an app that writes a line with each request goes on, and its next lines are there once there is room',
    async (t) => {
      const disk = smallDisk(t)
      const deck = await startDeckHere(t, 'logs-each-request.cjs', { workers: 1,
        dataDir: path.join(disk.folder, 'data') })
      const { workers: [{ pid }] } = await deck.until({ ready: 1 })
      const url = await deck.appUrl()
      disk.fill()
      for (let n = 0; n < 10; n++) assert.equal(await (await fetch(url)).text(), String(pid))
      disk.free()
      const size = () => statSync(path.join(deck.folder, 'logs', 'slot-1.stdout.log')).size
      const before = size()
      await (await fetch(url)).text()
      assert.equal(size() - before, 3 * 5001 + 1)
    })

  rareTest('at the first start: another folder takes its place, which the commands find', async (t) => {
    const disk = smallDisk(t)
    disk.fill()
    const dataDir = path.join(disk.folder, 'data')
    const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, dataDir })
    const { history } = await deck.until({ ready: 1 })
    t.after(() => rmSync(deck.place, { recursive: true }))
    assert.match(String(history.problem), /cannot be written \(ENOSPC\)/)
    assert.match(deck.output.stderr,
      /^clusterdeck: dataDir: .* cannot be written \(ENOSPC\); until the next start everything is kept in /m)
    assert.equal((await fetch(await deck.appUrl())).status, 200)
    const { code, stdout } = await runCliHere(['restart', '--wait', '--data-dir', dataDir])
    assert.deepEqual([code, /succeeded/.test(stdout)], [0, true])
  })

  rareTest('at a later start, full or read-only: the app is served, and the history goes on once there is room',
    async (t) => {
      const disk = smallDisk(t)
      const dataDir = path.join(disk.folder, 'data')
      const before = await startReady(t, 'answers-with-pid.js', { workers: 1, dataDir })
      await before.stop()
      disk.fill()
      // In a process of its own: where a file is open to be written, no disk can be made read-only.
      const full = await startDeck(t, 'answers-with-pid.js', { workers: 1, dataDir })
      const { history } = await full.until({ ready: 1 })
      assert.match(history.problem ?? '', /\S/)
      assert.equal((await full.history('type=master.started')).length, 2, 'it knows what was')
      disk.free()
      await full.untilEvent('history.recovered')
      assert.deepEqual((await full.history('type=master.started,master.stopped')).map(({ type }) => type), [
        'master.started',
        'master.stopped',
        'master.started'
      ])
      await full.stop()

      disk.setReadOnly(true)
      const readOnly = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, dataDir })
      t.after(() => rmSync(readOnly.place, { recursive: true }))
      assert.match(String((await readOnly.until({ ready: 1 })).history.problem), /EROFS/)
      assert.equal((await fetch(await readOnly.appUrl())).status, 200)
      await readOnly.stop()
      assert.equal(existsSync(path.join(readOnly.place, 'master.json')), false)
    })
})
