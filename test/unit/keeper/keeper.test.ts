import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { childrenOf } from '../../../server/system/children.ts'
import { identifyProcess, isAlive, signalProcess } from '../../../server/system/process-identity.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url))

describe('what comes on the channel of a master', { concurrency: 2 }, () => {
  for (const seed of [1, 2]) {
    test(`the keeper outlives all of it, keeps what it holds, and says so once (seed ${seed})`, async (t) => {
      const { code, stdout, stderr } = await keep(t, 'master-that-babbles.js', String(seed))
      assert.equal(code, 7, stderr)
      const { kept, unsaved } = JSON.parse(stdout)
      assert.ok(kept.includes('real'), stdout)
      assert.deepEqual(unsaved.at(-1), { type: 'told', id: 1 })
      const [first, total, ended, ...others] = stderr.trimEnd().split('\n')
      assert.match(first, /^clusterdeck: the master \(pid \d+\) has sent what was dropped: /)
      assert.ok(Number(/has sent (\d+) messages that were dropped$/.exec(total)?.[1]) > 500, total)
      assert.match(ended, /^clusterdeck: the master ended \(SIGKILL\); the next one starts$/)
      assert.deepEqual(others, [])
    })
  }
})

test('a master that takes too much memory for long is replaced, and the next one is told', async (t) => {
  const { code, stdout, stderr } = await keep(t, 'master-that-grows.js', String(64 * 1024 ** 3))
  assert.equal(code, 7, stderr)
  const { hang, signal } = JSON.parse(stdout)
  assert.deepEqual([hang, signal], [{ silentMs: 0, stack: null, reason: null, memoryBytes: 64 * 1024 ** 3 }, 'SIGKILL'])
  assert.match(stderr, /^clusterdeck: the master takes 65536 MB of memory and is killed$/m)
})

describe('a config file that runs for ever', { concurrency: 2 }, () => {
  const file = path.join(tempFolder(), 'loop.mjs')
  before(() => writeFileSync(file, 'process.stdout.write("begun\\n")\nwhile (true) {}'))

  test('is given up at a first start, with the exit code of a wrong configuration', async (t) => {
    const { code, stderr } = await keep(t, 'loads-a-config.js', file, '100')
    assert.equal(code, 2, stderr)
    assert.equal(stderr, `clusterdeck: ${file}: expected a config file that loads, received: nothing within 100 ms\n`)
  })

  test('does not outlive the keeper', async (t) => {
    const child = spawn(process.execPath, [fixture('keeps.js'), fixture('loads-a-config.js'), file, '60000'], {
      stdio: ['ignore', 'pipe', 'ignore']
    })
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const [master] = childrenOf(Number(child.pid)).map(identifyProcess)
    t.after(() => signalProcess(master, 'SIGKILL'))
    child.kill('SIGKILL')
    await until(() => !isAlive(master), 'the end of the master')
  })
})

/** `master`: of test/fixtures */
async function keep (t: TestContext, master: string, ...args: string[]) {
  const child = spawn(process.execPath, [fixture('keeps.js'), fixture(master), ...args], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.after(() => child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, stdout, stderr }
}
