import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const fixture = (/** @type {string} */ name) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url))

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

/** @param {import('node:test').TestContext} t @param {string} master of test/fixtures @param {string[]} args */
async function keep (t, master, ...args) {
  const child = spawn(process.execPath, [fixture('keeps.js'), fixture(master), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, stdout, stderr }
}
