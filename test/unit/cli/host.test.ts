import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { untilStopped } from '../../../server/cli/host.ts'
import { DeckError, type ErrorCode } from '../../../server/errors.ts'
import { tempFolder } from '../../support/folder.ts'

const TIMEOUT_MS = 60_000

test('an app has stopped once its host says so, or has ended as it should meanwhile, and not if that was killed', async () => {
  const view = await untilStopped('shop', waitFor([{ state: 'stopping' }, { state: 'stopped' }]))
  assert.deepEqual(view, { state: 'stopped' })

  assert.deepEqual(await untilStopped('shop', waitFor([{ state: 'stopping' }, 'no-master'])), { state: 'stopping' })

  const killed = waitFor([{ state: 'stopping' }, 'no-master'])
  announce(killed.env, spawnSync('true').pid)
  await assert.rejects(untilStopped('shop', killed), { code: 'no-master' })
  await assert.rejects(untilStopped('shop', waitFor([{ state: 'stopping' }, 'unauthenticated'])), {
    code: 'unauthenticated'
  })
})

test('a host that has closed its port, and has not ended yet, is waited for', async () => {
  const ending = waitFor(['no-master', 'no-master', { state: 'stopped' }])
  announce(ending.env, process.pid)
  assert.deepEqual(await untilStopped('shop', ending), { state: 'stopped' })
})

/** `answers`: of a host: an app, or an error */
function waitFor (answers: ({ state: string } | ErrorCode)[]) {
  const left = [...answers]
  return { env: { CLUSTERDECK_HOST_DIR: tempFolder() }, signal: AbortSignal.timeout(TIMEOUT_MS), timeoutMs: TIMEOUT_MS,
    host: { async get<Answer> () {
      const next = left.shift()
      if (typeof next === 'object') return next as Answer
      throw new DeckError(next as ErrorCode, 'as wanted')
    } } }
}

function announce ({ CLUSTERDECK_HOST_DIR: folder }: { CLUSTERDECK_HOST_DIR: string }, pid: number) {
  writeFileSync(path.join(folder, 'master.json'), JSON.stringify({ pid, adminUrl: 'http://127.0.0.1:1' }))
  writeFileSync(path.join(folder, 'admin.token'), 'secret')
}
