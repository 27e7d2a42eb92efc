import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { takeLock } from '../../../db/lock.ts'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { tempFolder } from '../../support/folder.ts'

const LOCK = new URL('../../../db/lock.ts', import.meta.url).href

/** Takes the lock in a process of its own, which forgets it at once, and says whether it got it. */
async function takeElsewhere (t: TestContext, file: string) {
  const source = `
    const { takeLock } = await import(${JSON.stringify(LOCK)})
    const answer = takeLock(process.argv[1]) === null ? 'refused' : 'taken'
    gc()
    console.log(answer)
    setInterval(() => {}, 2 ** 30)`
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', source, file], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.after(() => child.kill('SIGKILL'))
  const [answer] = await once(child.stdout.setEncoding('utf8'), 'data')
  return { child, answer: answer.trim() }
}

test('a lock is one process\'s alone, until that lets go of it or ends, however hard', async (t) => {
  const file = path.join(tempFolder(), 'master.lock')
  const { child, answer } = await takeElsewhere(t, file)
  assert.equal(answer, 'taken')
  assert.equal(takeLock(file), null)

  child.kill('SIGKILL')
  await once(child, 'exit')
  const lock = takeLock(file)
  assert.ok(lock)
  assert.equal((await takeElsewhere(t, file)).answer, 'refused')
  lock.release()
  assert.equal((await takeElsewhere(t, file)).answer, 'taken')
})

test('a lock writes nothing, and leaves nothing beside its file', () => {
  const folder = tempFolder()
  const lock = takeLock(path.join(folder, 'master.lock'))
  assert.deepEqual(readdirSync(folder), ['master.lock'])
  assert.equal(statSync(path.join(folder, 'master.lock')).size, 0)
  lock?.release()
})

/** More than the kernel gives away. */
const GONE_PID = 2 ** 22 + 1

test('a file that cannot be a lock is an error, not a refusal', () => {
  assert.throws(() => takeLock(path.join(tempFolder(), 'nowhere', 'master.lock')), /directory does not exist/)
  assert.throws(() => takeLock(tempFolder()), { code: 'SQLITE_CANTOPEN' })
})

test('a data folder in use is refused by the name of its master; one whose lock cannot be had is unusable', async (t) => {
  const folder = path.join(tempFolder(), 'data')
  const dataDir = openDataDir(folder)
  const { child } = await takeElsewhere(t, path.join(folder, 'master.lock'))
  assert.throws(() => dataDir.lock(), { code: 'master-running',
    message: 'another master already runs on this data folder' })
  dataDir.announce({ pid: GONE_PID, startTime: null, keeper: null, pidNamespace: null,
    adminUrl: 'http://127.0.0.1:9777', startedAt: '2026-01-01T00:00:00.000Z' })
  assert.throws(() => dataDir.lock(), { message: 'another master already runs on this data folder' },
    'it is taking over from that one')
  dataDir.announce({ pid: process.pid, startTime: null, keeper: null, pidNamespace: null,
    adminUrl: 'http://127.0.0.1:9777', startedAt: '2026-01-01T00:00:00.000Z' })
  assert.throws(() => dataDir.lock(), { code: 'master-running',
    message: `a master (pid ${process.pid}, http://127.0.0.1:9777) already runs on this data folder` })
  child.kill('SIGKILL')
  await once(child, 'exit')
  dataDir.lock()
  dataDir.release({ handsOver: false })
  writeFileSync(path.join(folder, 'master.lock'), 'no lock at all, and long enough to be looked at '.repeat(100))
  assert.throws(() => dataDir.lock(), { code: 'data-dir-unusable', message: /^dataDir: expected .*SQLITE_NOTADB/ })
})
