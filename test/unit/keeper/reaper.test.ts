import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadPosix } from '../../../server/system/posix.ts'

const ADOPTS = fileURLToPath(new URL('../../fixtures/adopts-orphans.js', import.meta.url))
const skip = loadPosix() === null && 'without koffi orphans go to the system\'s init'

test('what a dead parent leaves behind is taken in, its end is known as it was, and no zombie stays', { skip },
  async (t) => {
    const reaper = fork(ADOPTS)
    t.after(() => reaper.kill('SIGKILL'))
    const [{ orphans, parents, reaped }] = await once(reaper, 'message') as [
      Record<'orphans' | 'parents', number[]> & { reaped: { pid: number }[] }
    ]
    assert.deepEqual(parents, [3, 0], 'node still hears how its own children end')
    const byPid = new Map(reaped.map(({ pid, ...exit }) => [pid, exit]))
    assert.equal(reaped.length, 2, 'its own children are no orphans')
    assert.deepEqual(byPid.get(orphans[0]), { code: 7, signal: null })
    assert.deepEqual(byPid.get(orphans[1]), { code: null, signal: 'SIGTERM' })
    for (const pid of orphans) assert.equal(existsSync(`/proc/${pid}`), false)
  })

test('a process that lives, and one that is no child, are not waited for', { skip }, () => {
  const posix = loadPosix()
  assert.equal(posix?.wait(process.ppid), null)
  assert.equal(posix?.wait(process.pid), null)
})

test('a datagram that nobody takes is told as such, and leaves no descriptor open', { skip }, () => {
  const posix = loadPosix()
  const before = readdirSync('/proc/self/fd').length
  for (const path of ['/nowhere/at/all', '@clusterdeck-nobody'])
    assert.equal(posix?.sendDatagram(path, 'READY=1'), false)
  assert.equal(readdirSync('/proc/self/fd').length, before)
})
