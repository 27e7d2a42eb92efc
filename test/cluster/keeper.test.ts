import assert from 'node:assert/strict'
import { chmodSync, cpSync, readdirSync, statSync, truncateSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { describe } from 'node:test'
import { openSqlite } from '../../db/sqlite.ts'
import { identifyProcess, isAlive, signalProcess } from '../../server/system/process-identity.ts'
import { runCliHere } from '../support/cli-here.ts'
import { FIXTURES, runCli, startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const APP = path.join(FIXTURES, 'answers-with-pid.js')

describe('keeper and data folder', { concurrency: 2 }, () => {
  rareTest('killed, it takes nothing with it: a second start is refused, the app answers, is restarted and stopped',
    async (t) => {
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1 })
      const master = identifyProcess(deck.masterPid)
      t.after(() => signalProcess(master, 'SIGTERM'))
      deck.signal('SIGKILL')
      await deck.exited
      await deck.untilEvent('keeper.lost')
      const again = await runCli(['start', APP, '--admin-port', '0', '--data-dir', deck.folder])
      assert.deepEqual(again, { code: 1, stdout: '',
        stderr: `clusterdeck: a master (pid ${master.pid}, ${deck.adminUrl}) already runs on this data folder\n` })
      assert.equal((await fetch(await deck.appUrl())).status, 200)
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      assert.equal((await runCliHere(['stop', '--data-dir', deck.folder])).code, 0)
      await until(() => !isAlive(master), 'the end of the master')
    })

  rareTest('a variable that only a keeper should set, set by hand, makes a master of its own', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, env: { CLUSTERDECK_KEPT: '1' } })
    assert.equal(deck.masterPid, deck.child.pid)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
  })

  rareTest(
    'a Unix socket stays the same file from master to master; where all were killed at once, the next start binds it anew',
    async (t) => {
      const socketPath = path.join(tempFolder(), 'app.sock')
      const env = { SOCKET_PATH: socketPath }
      const first = await startReady(t, 'unix-socket.js', { workers: 1, env })
      chmodSync(socketPath, 0o660)
      const { ino, mode } = statSync(socketPath)
      await first.loseMaster()
      const { workers } = await first.until({ ready: 1 })
      assert.deepEqual([statSync(socketPath).ino, statSync(socketPath).mode], [ino, mode])
      assert.equal(await ask(socketPath), String(workers[0].pid))

      const all = [Number(first.child.pid), first.masterPid, workers[0].pid].map(identifyProcess)
      for (const identity of all) signalProcess(identity, 'SIGKILL')
      await until(() => !all.some(isAlive), 'their ends')
      assert.ok(statSync(socketPath).isSocket())
      const second = await startDeckHere(t, 'unix-socket.js', { workers: 1, env, dataDir: first.folder })
      const { workers: [{ pid }] } = await second.until({ ready: 1 })
      assert.equal(await ask(socketPath), String(pid))
    }
  )

  for (const [what, variable] of [['a port', 'PORT'], ['a Unix socket', 'SOCKET_PATH']] as const) {
    rareTest(`${what} that nobody but the orphans holds is the next master's, by hand and without a keeper`,
      async (t) => {
        const address = variable === 'PORT' ? String(await freePort()) : path.join(tempFolder(), 'app.sock')
        const options = { workers: 1, flags: ['--no-keeper', '--orphan-ms', '1000', '--drain-idle-grace-ms', '100'],
          env: { [variable]: address } }
        const app = variable === 'PORT' ? 'listens-on-port.js' : 'unix-socket.js'
        const first = await startDeck(t, app, options)
        await first.until({ ready: 1 })
        first.signal('SIGKILL')
        await first.exited
        const second = await startDeckHere(t, app, { ...options, dataDir: first.folder })
        const { type, message } = await second.untilEvent(['worker.ready', 'worker.exited'], { worker: 2 })
        assert.equal(type, 'worker.ready', message ?? undefined)
        await second.until({ ready: 1 })
        assert.equal((await second.untilEvent('worker.exited')).cause, 'master-lost')
      })
  }

  rareTest(
    'a history that its master could not finish is gone on with; one that is damaged is moved aside, with a notice',
    async (t) => {
      const folder = tempFolder()
      const first = await startReady(t, 'answers-with-pid.js', { workers: 1,
        flags: ['--no-keeper', '--orphan-ms', '100'], dataDir: folder })
      first.signal('SIGKILL')
      await first.exited
      const copies = ['torn', 'damaged'].map((name) => path.join(tempFolder(), name))
      for (const copy of copies) cpSync(folder, copy, { recursive: true })
      const wal = path.join(copies[0], 'history.db-wal')
      truncateSync(wal, statSync(wal).size - 100)
      for (const name of ['history.db', 'history.db-wal']) truncateSync(path.join(copies[1], name), 100)

      for (const [n, isMoved] of [false, true].entries()) {
        const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 1, dataDir: copies[n] })
        assert.deepEqual((await deck.history('type=master.stopped')).map(({ cause, pid }) => [cause, pid]), [[
          'master-lost',
          first.masterPid
        ]])
        await deck.stop()
        assert.equal(
          /The history database was damaged and is kept as .*history\.db\.damaged-.*, a new one has begun; \S/.test(
            deck.output.stdout
          ),
          isMoved
        )
        assert.equal(readdirSync(copies[n]).some((name) => name.includes('damaged')), isMoved)
        const db = openSqlite(path.join(copies[n], 'history.db'), { readonly: true })
        assert.equal(db.pragma('integrity_check', { simple: true }), 'ok')
        db.close()
      }
    }
  )
})

function ask (socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    http.get({ socketPath, agent: false }, (response) => response.setEncoding('utf8').on('data', resolve)).on('error',
      reject)
  })
}
