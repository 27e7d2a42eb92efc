import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openSqlite } from '../../db/sqlite.ts'
import { isAlive, identifyProcess } from '../../server/system/process-identity.ts'
import { FIXTURES, startDeck } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'

const ALONE = ['--no-keeper']

describe('a master that is lost', () => {
  test('killed while idle, in a deploy, in a scale and while workers boot, under load: no request fails, and the cluster is whole again', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js')
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    const fresh = openFreshConnections(t, url, { perSecond: 50 })
    const kept = hammer(t, url, { connections: 8 })

    await deck.loseMaster()
    await deck.until({ ready: 2 })
    // From here on: at its very start a keeper has not opened all of its own yet.
    const descriptors = countDescriptors(deck.child.pid)

    // It gets no further than its first step, however late the test hears of that.
    await deck.api('/rollouts', { method: 'POST', body: '{"kind": "deploy", "strategy": {"minReadyMs": 60000}}' })
    const { worker: candidate } = await deck.untilEvent(
      ({ type, rollout }) => type === 'worker.forked' && rollout === 1,
      'the first new worker of the deploy'
    )
    await deck.loseMaster()
    await deck.until({ ready: 2 })

    await deck.api('/scale', { method: 'PUT', body: '{"workers": 3}' })
    await deck.untilEvent(({ type, slot }) => type === 'worker.forked' && slot === 3, 'the worker of slot 3')
    await deck.loseMaster()
    // By then it has recorded the loss of the one before, and its workers are booting.
    await deck.untilEvent(({ type, pid }) => type === 'master.started' && pid === deck.masterPid,
      'the start of the next master')
    await deck.loseMaster()
    const { workers, release } = await deck.until({ ready: 3 })

    const [{ failures, total }, { failures: keptFailures }] = [await fresh.stop(), await kept.stop()]
    t.diagnostic(`${total} fresh connections`)
    assert.deepEqual([failures, keptFailures], [[], []])
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
    await until(() => countDescriptors(deck.child.pid) === descriptors)
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
    const deck = await startDeck(t, 'answers-with-pid.js', { flags: ['--config', config] })
    await deck.until({ ready: 2 })
    await writeFile(config, '{"workers": "many"}')
    await deck.loseMaster()
    await deck.until({ ready: 2 })
    const { master } = await deck.status()
    await deck.api('/upgrade', { method: 'POST', body: '{}' })
    await deck.untilEvent(({ type }) => type === 'master.upgraded', 'the next master')
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

  rareTest('killed in the same instant as all its workers: connections wait for the next ones', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js')
    const { workers } = await deck.until({ ready: 2 })
    const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
    await fresh.untilAnswered(20)
    const pids = [deck.masterPid, ...workers.map(({ pid }) => pid)]
    await fresh.whenIdle(() => {
      for (const pid of pids) process.kill(pid, 'SIGKILL')
    })
    await deck.meetNext()
    await deck.until({ ready: 2 })
    const { failures, slowestMs } = await fresh.stop()
    t.diagnostic(`the slowest request took ${slowestMs} ms`)
    assert.deepEqual(failures, [])
    const exits = await deck.history('type=worker.exited')
    assert.deepEqual(exits.map(({ worker, cause, signal }) => [worker, cause, signal]), [[2, 'killed', 'SIGKILL'], [1,
      'killed', 'SIGKILL']])
  })

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
      await deck.api('/rollouts', { method: 'POST', body: '{"kind": "restart"}' })
      await deck.untilEvent(({ type, worker }) => type === 'worker.draining' && worker === old.id, 'the drain')
      const young = await deck.untilEvent(({ type, worker }) => type === 'worker.ready' && Number(worker) > old.id,
        'the replacement')
      await until(async () => {
        const response = await fetch(url)
        return await response.text() === String(young.pid) || response.headers.get('connection') === 'close'
      })
      slow.push(fetch(`${url}/slow`))
      await (await fetch(url)).text()
      await deck.loseMaster()
      await deck.untilEvent(({ type, worker }) => type === 'worker.ready' && Number(worker) > Number(young.worker),
        'the worker of the next master')
      await writeFile(gate, '')
      assert.deepEqual(await Promise.all(slow.map(async (response) => Number(await (await response).text()))), [old.pid,
        young.pid])
      for (const [{ id }, cause] of [[old, 'restart'], [{ id: young.worker }, 'master-lost']] as const) {
        const exit = await deck.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === id, 'its exit')
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
      const first = await startDeck(t, releases.entry, { workers: 1, flags: ALONE, dataDir: folder, env })
      await first.until({ ready: 1 })
      await first.api('/scale', { method: 'PUT', body: '{"workers": 2}' })
      const { workers } = await first.until({ ready: 2 })
      await releases.add('bad', 'process.exit(1)')
      first.signal('SIGKILL')
      await first.exited

      const second = await startDeck(t, releases.entry, { workers: 1, flags: ALONE, dataDir: folder, env })
      const status = await second.until({ ready: 2 })
      assert.equal(status.release.id, 'r1')
      assert.deepEqual(status.workers.map(({ id }) => id), [3, 4])
      for (const { id } of workers) {
        const { cause } = await second.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === id,
          `the exit of worker ${id}`)
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
      const second = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, dataDir: folder })
      await second.until({ ready: 1 })
      await until(() => !isAlive(orphan))
      await assert.rejects(fetch(url))
    }
  )
})

describe('keeper', { concurrency: 2 }, () => {
  rareTest('a master that is stuck or stopped is not left so', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1, flags: ['--keeper-hung-after-ms', '2000'],
      launch: { execArgv: ['--require', `${FIXTURES}loops-at-sigwinch.cjs`] } })
    await deck.until({ ready: 1 })

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
      assert.deepEqual((await fresh.stop()).failures, [])
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
      await until(() =>
        ![deck.masterPid, ...workers.map(({ pid }) => pid)].some((pid) => isAlive(identifyProcess(pid)))
      )
    })
  })

  rareTest('gives up, loudly, where it was told to after so many deaths in a row', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1,
      flags: ['--keeper-give-up-after', '1', '--orphan-ms', '1000'] })
    await deck.until({ ready: 1 })
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
    await until(() => !workers.some(({ pid }) => isAlive(identifyProcess(pid))))
  })

  rareTest('killed before it has taken a socket, it is missed all the same', async (t) => {
    const deck = await startDeck(t, 'boots-slowly.js', { workers: 1, env: { BOOT_MS: '1500' } })
    await deck.untilEvent(({ type }) => type === 'worker.online', 'the worker')
    deck.signal('SIGSTOP')
    await deck.until({ ready: 1 })
    t.after(() => process.kill(deck.masterPid, 'SIGTERM'))
    deck.signal('SIGKILL')
    await deck.untilEvent(({ type }) => type === 'keeper.lost', 'the news that it is gone')
  })
})

function countDescriptors (pid: number | undefined) {
  return readdirSync(`/proc/${pid}/fd`).length
}

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

/** Looks until it is so: a process that is no child of ours tells nobody of its end. */
async function until (isSo: () => boolean | Promise<boolean>) {
  while (!await isSo()) await new Promise((resolve) => setTimeout(resolve, 20))
}
