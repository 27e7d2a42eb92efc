import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openSqlite } from '../../db/sqlite.ts'
import { isAlive, identifyProcess } from '../../server/system/process-identity.ts'
import { above } from '../support/event-log.ts'
import { FIXTURES, startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { countDescriptors } from '../support/process-figures.ts'
import { until } from '../support/until.ts'

const ALONE = ['--no-keeper']

describe('a master that is lost', () => {
  test('killed while idle, in a deploy, in a scale and while workers boot, under load: no request fails, and the cluster is whole again', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js')
    const url = await deck.appUrl()
    const fresh = openFreshConnections(t, url, { perSecond: 50 })
    const kept = hammer(t, url, { connections: 8 })

    await deck.loseMaster()
    await deck.until({ ready: 2 })
    // From here on: at its very start a keeper has not opened all of its own yet.
    const descriptors = countDescriptors(deck.child.pid)

    // It gets no further than its first step, however late the test hears of that.
    await deck.post('/rollouts', { kind: 'deploy', strategy: { minReadyMs: 60000 } })
    const { worker: candidate } = await deck.untilEvent('worker.forked', { rollout: 1 })
    await deck.loseMaster()
    await deck.until({ ready: 2 })

    await deck.put('/scale', { workers: 3 })
    await deck.untilEvent('worker.forked', { slot: 3 })
    await deck.loseMaster()
    // By then it has recorded the loss of the one before, and its workers are booting.
    await deck.untilEvent('master.started', { pid: deck.masterPid })
    await deck.loseMaster()
    const { workers, release } = await deck.until({ ready: 3 })

    for (const load of [fresh, kept]) await load.checkNoneLost()
    assert.equal(release.id, 'r1', 'the deploy had not succeeded')
    assert.deepEqual(workers.map(({ slot }) => slot), [1, 2, 3])

    const events = (await deck.history('limit=1000')).reverse()
    const lost = events.filter(({ type }) => type === 'master.stopped')
    assert.deepEqual(lost.map(({ cause, signal }) => [cause, signal]), Array(4).fill(['master-lost', 'SIGKILL']))
    assert.deepEqual(
      events.filter(({ type }) => type === 'rollout.failed').map(({ cause, rollout }) => [cause, rollout]),
      [['master-lost', 1]]
    )
    assert.equal(events.find(({ type, worker }) => type === 'worker.exited' && worker === candidate)?.cause,
      'master-lost')
    const forked = events.filter(({ type }) => type === 'worker.forked')
    const exited = events.filter(({ type }) => type === 'worker.exited')
    assert.equal(new Set(forked.map(({ worker }) => worker)).size, forked.length, 'no id is used twice')
    assert.deepEqual(forked.length - exited.length, 3, 'every other end is on record')
    assert.deepEqual(exited.filter(({ cause }) => cause !== 'master-lost'), [])
    const alive = forked.filter(({ pid }) => isAlive(identifyProcess(Number(pid)))).map(({ worker }) => worker)
    assert.deepEqual(alive, workers.map(({ id }) => id), 'no orphan is left')
    await until(() => countDescriptors(deck.child.pid) === descriptors, 'its descriptors to be closed')
    assert.deepEqual(zombiesOf(deck.child.pid), [])

    const master = identifyProcess(deck.masterPid)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
    assert.equal(isAlive(master), false)
    const db = openSqlite(path.join(deck.folder, 'history.db'), { readonly: true })
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok')
    db.close()
  })

  test('killed, or changed for another one, while its config file is broken: the next one goes on as it was started', async (t) => {
    const config = path.join(tempFolder(), 'clusterdeck.config.json')
    await writeFile(config, JSON.stringify({ workers: 2, admin: { sessionTtlMs: 60_000 } }))
    const deck = await startReady(t, 'answers-with-pid.js', { flags: ['--config', config] })
    await writeFile(config, '{"workers": "many"}')
    await deck.loseMaster()
    await deck.until({ ready: 2 })
    const { master } = await deck.status()
    await deck.post('/upgrade', {})
    await deck.untilEvent('master.upgraded')
    const { master: next, desiredWorkers } = await deck.until({ ready: 2 })
    assert.notEqual(next.pid, master.pid)
    assert.equal(desiredWorkers, 2)
  })

  rareTest(
    'killed after it has forked a worker for a lost one, and before that is on record: the end of the lost one is, and the new one has ended with it',
    async (t) => {
      const file = path.join(tempFolder(), 'forked')
      const deck = await startDeck(t, 'answers-with-pid.js', {
        launch: { execArgv: ['--import', path.join(FIXTURES, 'dies-after-its-fork.js')], env: { FORKED_FILE: file } }
      })
      const { workers } = await deck.until({ ready: 2 })
      process.kill(workers[0].pid, 'SIGKILL')
      await deck.meetNext()
      const { workers: after } = await deck.until({ ready: 2 })
      assert.equal(isAlive(identifyProcess(Number(readFileSync(file, 'utf8')))), false)
      const events = await deck.history('limit=1000')
      const [forked, exited] = ['worker.forked', 'worker.exited'].map((name) =>
        events.filter(({ type }) => type === name)
      )
      assert.ok(exited.some(({ worker }) => worker === workers[0].id))
      assert.equal(new Set(forked.map(({ worker }) => worker)).size, forked.length, 'no id is used twice')
      const alive = forked.filter(({ pid }) => isAlive(identifyProcess(Number(pid)))).map(({ worker }) => worker)
      assert.deepEqual(alive.sort(), after.map(({ id }) => id).sort())
    }
  )

  rareTest(
    'answers that take longer than the change of masters arrive, and a worker that was draining then still drains, for the reason that it had',
    async (t) => {
      const gate = path.join(tempFolder(), 'gate')
      const deck = await startDeck(t, 'answers-when-told.js', { workers: 1, env: { GATE: gate } })
      const { workers: [old] } = await deck.until({ ready: 1 })
      const url = await deck.appUrl()
      const slow = [fetch(`${url}/slow`)]
      // It is with the worker once a later one is answered: connections are accepted in order.
      await (await fetch(url)).text()
      await deck.post('/rollouts', { kind: 'restart' })
      await deck.untilEvent('worker.draining', { worker: old.id })
      const young = await deck.untilEvent('worker.ready', { worker: above(old.id) })
      await until(async () => {
        const response = await fetch(url)
        return await response.text() === String(young.pid) || response.headers.get('connection') === 'close'
      }, 'an answer of the replacement')
      slow.push(fetch(`${url}/slow`))
      await (await fetch(url)).text()
      await deck.loseMaster()
      await deck.untilEvent('worker.ready', { worker: above(Number(young.worker)) })
      await writeFile(gate, '')
      assert.deepEqual(await Promise.all(slow.map(async (response) => Number(await (await response).text()))), [old.pid,
        young.pid])
      for (const [{ id }, cause] of [[old, 'restart'], [{ id: young.worker }, 'master-lost']] as const) {
        const exit = await deck.untilEvent('worker.exited', { worker: id })
        assert.deepEqual([exit.cause, exit.code], [cause, 0])
      }
    }
  )

  rareTest(
    'the next start by hand goes on with the release, the size and the workers that were left; one that says another entry or size is obeyed',
    async (t) => {
      const releases = await createReleases('answers-with-pid.js')
      const folder = tempFolder()
      const env = { PORT: '0' }
      const first = await startReady(t, releases.entry, { workers: 1, flags: ALONE, dataDir: folder, env })
      await first.put('/scale', { workers: 2 })
      const { workers } = await first.until({ ready: 2 })
      await releases.add('bad', 'process.exit(1)')
      first.signal('SIGKILL')
      await first.exited

      const second = await startDeck(t, releases.entry, { workers: 1, flags: ALONE, dataDir: folder, env })
      const status = await second.until({ ready: 2 })
      assert.equal(status.release.id, 'r1')
      assert.deepEqual(status.workers.map(({ id }) => id), [3, 4])
      for (const { id } of workers) {
        const { cause } = await second.untilEvent('worker.exited', { worker: id })
        assert.equal(cause, 'master-lost')
      }
      second.signal('SIGKILL')
      await second.exited

      const third = await startDeckHere(t, 'boots-slowly.js', { workers: 3, dataDir: folder })
      const { release } = await third.until({ ready: 3 })
      assert.equal(release.id, 'r2')
      assert.match(release.entry, /boots-slowly\.js$/)
    }
  )

  rareTest(
    'what it wrote half, and a memory that makes no sense, keep no master from starting; the workers that it cannot claim go on, and drain and exit once their time is up',
    async (t) => {
      const folder = tempFolder()
      const first = await startDeck(t, 'answers-with-pid.js', { workers: 1, flags: [...ALONE, '--orphan-ms', '1500'],
        dataDir: folder })
      const { workers: [{ pid }] } = await first.until({ ready: 1 })
      const orphan = identifyProcess(pid)
      const url = await first.appUrl()
      first.signal('SIGKILL')
      await first.exited
      assert.equal((await fetch(url)).status, 200)
      await writeFile(path.join(folder, 'memory.json'), '{"version": 1, "mas')
      await rm(path.join(folder, 'history.db-shm'))
      await startReadyHere(t, 'answers-with-pid.js', { workers: 1, dataDir: folder })
      await until(() => !isAlive(orphan), 'its end')
      await assert.rejects(fetch(url))
    }
  )
})

describe('keeper', { concurrency: 2 }, () => {
  rareTest('a master that is stuck or stopped is not left so', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags: ['--keeper-hung-after-ms', '5000'],
      launch: { execArgv: ['--require', `${FIXTURES}loops-at-sigwinch.cjs`] } })

    await t.test('the keeper ends one that is stuck in a loop, and the history says where', {
      skip: process.platform !== 'linux' && 'its stack can be read on Linux alone'
    }, async () => {
      process.kill(deck.masterPid, 'SIGWINCH')
      await deck.meetNext()
      await deck.until({ ready: 1 })
      const [{ message, detail }] = await deck.history('type=master.stopped')
      assert.match(String(message), /did not answer for \d+ ms, and was ended by the keeper$/)
      assert.match(String(detail?.stack), /^ {4}at process\.loopsForever|^ {4}at loopsForever/)
    })

    await t.test('it ends one that is stopped, and starts the next one; the workers serve on', async (t) => {
      const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
      process.kill(deck.masterPid, 'SIGSTOP')
      await deck.meetNext()
      await deck.until({ ready: 1 })
      await fresh.checkNoneLost()
      const [{ cause, signal, message }] = await deck.history('type=master.stopped')
      assert.deepEqual([cause, signal], ['master-lost', 'SIGKILL'])
      assert.match(String(message),
        /^the master \(pid \d+\) did not answer for \d+ ms, and was ended by the keeper; no JavaScript stack: the process is stopped by a signal$/)
      assert.match(deck.output.stderr, /^clusterdeck: the master has not answered for [\d.]+ m?s and is killed$/m)
    })

    await t.test('told twice to stop, it ends all at once whatever state the master is in', async () => {
      const { workers } = await deck.until({ ready: 1 })
      process.kill(deck.masterPid, 'SIGSTOP')
      deck.signal('SIGTERM')
      deck.signal('SIGINT')
      assert.deepEqual(await deck.exited, { code: 1, signal: null })
      const pids = [deck.masterPid, ...workers.map(({ pid }) => pid)]
      await until(() => !pids.some((pid) => isAlive(identifyProcess(pid))), 'their ends')
    })
  })

  rareTest('gives up, loudly, where it was told to after so many deaths in a row', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1,
      flags: ['--keeper-give-up-after', '1', '--orphan-ms', '1000'] })
    await deck.loseMaster()
    process.kill(deck.masterPid, 'SIGKILL')
    assert.deepEqual(await deck.exited, { code: 1, signal: null })
    assert.match(deck.output.stderr,
      /clusterdeck: the master ended 2 times in a row \(SIGKILL\); giving up \(option keeper\.giveUpAfter\)\n/)
  })

  rareTest('asked to stop while no master is there, it has one stop what is left', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1 })
    const { workers } = await deck.until({ ready: 1 })
    process.kill(deck.masterPid, 'SIGKILL')
    deck.signal('SIGTERM')
    assert.equal((await deck.exited).signal, null)
    await until(() => !workers.some(({ pid }) => isAlive(identifyProcess(pid))), 'their ends')
  })

  rareTest('killed before it has taken a socket, it is missed all the same', async (t) => {
    const deck = await startDeck(t, 'boots-slowly.js', { workers: 1, env: { BOOT_MS: '1500' } })
    await deck.untilEvent('worker.online')
    deck.signal('SIGSTOP')
    await deck.until({ ready: 1 })
    t.after(() => process.kill(deck.masterPid, 'SIGTERM'))
    deck.signal('SIGKILL')
    await deck.untilEvent('keeper.lost')
  })
})

function zombiesOf (parent: number | undefined): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) =>
    statOf(pid)?.ppid === parent && statOf(pid)?.state === 'Z'
  )
}

function statOf (pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state, ppid: Number(ppid) }
  } catch {
    // ESRCH: it has ended since.
    return null
  }
}
