import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { stopInHost } from '../../../server/cli/host.ts'
import { DeckError, type ErrorCode } from '../../../server/errors.ts'
import { tempFolder } from '../../support/folder.ts'

const TIMEOUT_MS = 60_000

test('an app has stopped once its host says so, or has ended as it should meanwhile, and not if that was killed', async () => {
  assert.deepEqual(await stopAt([{ state: 'stopping' }, { state: 'stopping' }, { state: 'stopped' }]), {
    state: 'stopped'
  })
  assert.deepEqual(await stopAt([{ state: 'running' }, { state: 'stopping' }, 'no-master']), { state: 'stopping' })
  await assert.rejects(stopAt([{ state: 'stopping' }, 'no-master'], spawnSync('true').pid), { code: 'no-master' })
  await assert.rejects(stopAt([{ state: 'stopping' }, 'unauthenticated']), { code: 'unauthenticated' })
})

test('a host that has closed its port, and has not ended yet, is waited for', async () => {
  assert.deepEqual(await stopAt([{ state: 'stopping' }, 'no-master', 'no-master', { state: 'stopped' }], process.pid), {
    state: 'stopped'
  })
})

/** `answers`: of a host: an app, or an error; `pid`: that the host has announced */
function stopAt (answers: ({ state: string } | ErrorCode)[], pid?: number) {
  const folder = tempFolder()
  if (pid !== undefined) {
    writeFileSync(path.join(folder, 'master.json'), JSON.stringify({ pid, adminUrl: 'http://127.0.0.1:1' }))
    writeFileSync(path.join(folder, 'admin.token'), 'secret')
  }
  const left = [...answers]
  const answer = async <Answer>() => {
    const next = left.shift()
    if (typeof next === 'object') return next as Answer
    throw new DeckError(next as ErrorCode, 'as wanted')
  }
  return stopInHost('shop', { get: answer, post: answer, signal: AbortSignal.timeout(TIMEOUT_MS),
    timeoutMs: TIMEOUT_MS }, { CLUSTERDECK_HOST_DIR: folder })
}
