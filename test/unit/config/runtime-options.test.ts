import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { configFromOptions, withValues } from '../../../server/config/config.ts'
import { tempFolder } from '../../support/folder.ts'

const cwd = tempFolder()
writeFileSync(path.join(cwd, 'app.js'), '')
const load = (options: Record<string, unknown>) => configFromOptions(options, { cwd, countCpus: () => 2 })
const PROGRAM = { entry: '/bin/sh', args: ['-c', 'exec server'] }

for (const [options, message] of [[{ execArgv: ['--inspect'] },
  /^execArgv: expected no options of Node .* "args", received some$/], [{ standby: 2 },
  /^standby: expected 0 .*, received 2$/], [{ dispatch: 'sticky' },
  /^dispatch: expected "shared" .*, received "sticky"$/], [{ portPerSlot: 4000 },
  /^portPerSlot: expected 0 .*, received 4000$/], [{ ready: { signal: 'message' } },
  /^ready\.signal: expected "auto", "listening", "notify" or "online" .*, received "message"$/], [{
  stop: { message: 'text' }
}, /^stop\.message: expected nothing .* stop\.signal .*, received "text"$/], [{ crash: { graceMs: 5 } },
  /^crash\.graceMs: expected nothing .*, received 5$/], [{ recycle: { maxRequests: 100 } },
  /^recycle\.maxRequests: expected 0 .*, received 100$/]] as [Record<string, unknown>, RegExp][])
{
  test(`${JSON.stringify(options)} is refused where another program than Node runs`, async () => {
    await assert.rejects(load({ ...PROGRAM, ...options }), { code: 'invalid-config', message })
    await load({ entry: 'app.js', ...options })
  })
}

test('what it does not need is fine, and what it needs a Node.js program is refused', async () => {
  const { runtime } = await load({ ...PROGRAM, watchdog: { timeoutMs: 0 }, stop: { signal: 'SIGQUIT' },
    ready: { signal: 'online' } })
  assert.equal(runtime, 'other')
  await load({ ...PROGRAM, ready: { signal: 'notify' } })
  await assert.rejects(load({ entry: 'app.js', ready: { signal: 'notify' } }), {
    message: /^ready\.signal: expected .* process\.send\('ready'\).*, received "notify"$/
  })
  await assert.rejects(load({ entry: 'app.js', stop: { signal: 'SIGQUIT' } }), {
    message: /^stop\.signal: expected "SIGTERM" for a Node\.js program.*, received "SIGQUIT"$/
  })
})

test('a change while it runs is held against the same, and leaves it what it is', async () => {
  const config = await load(PROGRAM)
  assert.throws(() => withValues(config, { standby: 1 }), { message: /^standby: expected 0 / })
  const { runtime, drain } = withValues(config, { 'drain.deadlineMs': 5 })
  assert.deepEqual([runtime, drain.deadlineMs], ['other', 5])
})
