import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { runCommandLine } from '../../../server/command-line.ts'
import { startAdmin, TOKEN } from '../../support/admin.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { createEmulator } from '../../support/emulator.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import type { Terminal } from '../../../server/cli/program.ts'

/** `clusterdeck top` in this process, in a terminal that the test looks at. */
function top (words: string[], { env, cwd = tempFolder() }: { env: Record<string, string | undefined>, cwd?: string }) {
  const emulator = createEmulator({ rows: 24, columns: 100 })
  const raw = { isRaw: false }
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode (isRaw: boolean) {
    raw.isRaw = isRaw
  } })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, rows: 24, columns: 100 })
  stdout.setEncoding('utf8').on('data', (text) => emulator.write(text))
  const stderr = { text: '', write (text: string) {
    this.text += text
  } }
  const ended = runCommandLine(['top', ...words], { stdin, stdout, stderr, env, cwd } as unknown as Terminal)
  return { emulator, raw, stderr, stdout, ended, type: (text: string) => {
    stdin.write(text)
  }, shows: (expected: RegExp) =>
    until(() => expected.test(emulator.text()), `${expected}`).catch((error) => {
      throw new Error(`${error.message}\n${emulator.text()}\n${stderr.text}`)
    }), async quit () {
    stdin.write('q')
    assert.equal(await ended, 0)
    assert.deepEqual([raw.isRaw, emulator.modes.isAlternate, emulator.modes.isCursorShown, emulator.strange], [false,
      false, true, []])
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      assert.equal(process.listenerCount(signal), 0, signal)
  } }
}

test('it shows the apps of the host, sick first, with the workers and the output of the chosen one', async (t) => {
  const host = await startFakeHost(t, { shop: {}, mail: {}, db: { state: 'stopped' },
    bad: { state: 'failed', reason: 'workers: expected an integer' } })
  const { type, shows, quit, raw } = top([], { env: host.env, cwd: host.view('shop')?.cwd })
  await shows(/^> shop .* 2\/2 .* All 2 workers are ready$/m)
  await shows(/^ +2 +2 +4002 .* ready$/m)
  assert.equal(raw.isRaw, true)
  host.deck('shop').set({
    rollout: { id: 3, kind: 'deploy', state: 'rolling', progress: { total: 2, replaced: 1 }, steps: [] }
  })
  await shows(/^rollout 3 \(deploy\) rolling: 1 of 2 workers replaced/m)
  // A deploy comes before those that are well.
  type('j')
  await shows(/^> mail/m)
  host.put('new')
  await shows(/^ {2}new .* 2\/2/m)
  await quit()
})

test('it keeps the figures of a host that does not answer, and says so', async (t) => {
  const host = await startFakeHost(t, { shop: {} })
  const { shows, quit } = top([], host)
  await shows(/^> shop .* All 2 workers are ready$/m)
  await host.die()
  await shows(/^> shop +2\/2 .* no answer$/m)
  await shows(/^no master answers at /m)
  await quit()
})

test('it shows the named ones alone', async (t) => {
  const host = await startFakeHost(t, { shop: {}, mail: {}, db: { state: 'stopped' } })
  const { shows, quit, emulator } = top(['mail', 'db'], host)
  await shows(/^> mail +2\/2/m)
  assert.match(emulator.text(), /^ {2}db .* stopped$/m)
  assert.doesNotMatch(emulator.text(), /shop/)
  await quit()
})

test('it finds a deck without a host, and a host of another machine, by its address', async (t) => {
  const { url } = await startAdmin(t)
  const one = top(['--url', url, '--token', TOKEN], { env: {} })
  await one.shows(/^> .* All 2 workers are ready$/m)
  await one.quit()
  const host = await startFakeHost(t, { shop: {}, mail: {} })
  const { shows, quit } = top([], { env: { CLUSTERDECK_URL: host.url, CLUSTERDECK_TOKEN: TOKEN } })
  await shows(/^> mail +2\/2/m)
  await shows(/^ {2}shop +2\/2/m)
  await quit()
})

test('it ends by a signal as a program does that a signal ends, with the terminal as it was', async (t) => {
  const host = await startFakeHost(t, { shop: {} })
  const { shows, ended, raw, emulator } = top([], host)
  await shows(/^> shop/m)
  process.emit('SIGTERM')
  assert.equal(await ended, 143)
  assert.deepEqual([raw.isRaw, emulator.modes.isCursorShown], [false, true])
})

test('without a terminal it names the command for scripts', async (t) => {
  const host = await startFakeHost(t, { shop: {} })
  const { code, stdout, stderr } = await runCliHere(['top'], { env: host.env })
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr,
    /^clusterdeck: top: expected a terminal, received (stdin|stdout) is none; for scripts: clusterdeck status --watch\n$/)
  const dumb = top([], { env: { ...host.env, TERM: 'dumb' } })
  assert.equal(await dumb.ended, 2)
  assert.match(dumb.stderr.text, /TERM=dumb/)
})

test('it says so where nothing runs, an app is unknown, or too much is named', async (t) => {
  const empty = { CLUSTERDECK_HOST_DIR: tempFolder(), CLUSTERDECK_RUNTIME_DIR: tempFolder() }
  const none = top([], { env: empty })
  assert.deepEqual([await none.ended, none.stderr.text], [5,
    'clusterdeck: top: no app of this user runs on this machine, nor does a host\n'])
  const host = await startFakeHost(t, { shop: {} })
  const unknown = top(['shpo'], host)
  assert.deepEqual([await unknown.ended, unknown.stderr.text], [2,
    'clusterdeck: top: expected some of shop, received "shpo" (did you mean "shop"?)\n'])
  const both = top(['shop', '--name', 'mail'], host)
  assert.deepEqual([await both.ended, both.stderr.text], [2,
    'clusterdeck: top: expected either an app or --name, received both\n'])
  assert.equal(none.emulator.usual(), '')
})
