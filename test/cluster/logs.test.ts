import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { spawnCli, startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { checkLines } from '../support/log-lines.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { DeckClient } from '../support/deck-client.ts'

const MEGABYTE = 1024 * 1024
// The connections of fetch() stay open, and no drain need wait for them.
const env = { CLUSTERDECK_DRAIN_IDLE_GRACE_MS: '50' }

describe('the output of the workers', () => {
  rareTest('10 MB at full speed through rotation, while the master is killed: every line once, in order, none torn',
    async (t) => {
      const deck = await startDeck(t, 'writes-lines.js', { env, args: [String(5 * MEGABYTE)],
        flags: ['--logs-max-bytes', String(MEGABYTE / 2), '--logs-max-files', '1000', '--ready-signal', 'online'] })
      const { workers } = await deck.until({ ready: 2 })
      await deck.loseMaster()
      await deck.until({ ready: 2 })
      await deck.untilEvent('worker.exited', { worker: workers[1].id })
      await untilWhole(() => filesWithEnds(deck) >= 2)
      assert.equal((await deck.stop()).code, 0)
      for (const slot of [1, 2]) {
        const { bytes, files, writers } = checkLines(path.join(deck.folder, 'logs'), slot)
        t.diagnostic(`slot ${slot}: ${bytes} bytes in ${files} files, by ${writers.size} processes`)
        assert.ok(files > 8)
        assert.equal(writers.size, 2)
      }
    })

  test('goes to a file of the slot that its owner alone can read, whole when the app exits right after a large line or is killed, and not to the master\'s own, if that is no terminal', async (t) => {
    const deck = await startDeckHere(t, 'talks-and-dies.js', { env, workers: 1 })
    const url = await urlOf(deck)
    await fetch(`${url}/say?text=from+the+app`)
    await fetch(`${url}/child?text=from+its+child`)
    assert.equal(read(deck, 'stdout'), 'from the app\nfrom its child\n')
    assert.equal(statSync(path.join(deck.folder, 'logs', 'slot-1.stdout.log')).mode & 0o777, 0o600)
    await fetch(`${url}/large?bytes=3000000`).catch(() => {})
    const { code } = await deck.untilEvent('worker.exited')
    assert.equal(code, 3)
    await deck.until({ ready: 1 })
    const pid = Number(await (await fetch(`${await urlOf(deck)}/say?text=before+the+kill`)).text())
    process.kill(pid, 'SIGKILL')
    assert.equal(read(deck, 'stdout'), `from the app\nfrom its child\n${'x'.repeat(3_000_000)} end\nbefore the kill\n`)
    await deck.stop()
    assert.doesNotMatch(deck.output.stdout, /from the app/)
  })

  test('is repeated there when that is asked for, to its last line', async (t) => {
    const deck = await startDeckHere(t, 'talks-and-dies.js', { env, workers: 1, flags: ['--logs-mirror', 'on'] })
    const url = await urlOf(deck)
    await fetch(`${url}/throw?text=the+last+word`).catch(() => {})
    await deck.untilEvent('worker.exited')
    await deck.until({ ready: 1 })
    await fetch(`${await urlOf(deck)}/say?text=from+the+app`)
    await deck.stop()
    assert.match(deck.output.stdout, /^from the app$/m)
    assert.match(deck.output.stderr, /^Error: the last word$/m)
  })

  rareTest('arrives while there is no master, and the next one goes on with the same files', async (t) => {
    const deck = await startDeck(t, 'talks-and-dies.js', { env, workers: 1, flags: ['--no-keeper'] })
    const url = await urlOf(deck)
    await fetch(`${url}/say?text=with+a+master`)
    deck.signal('SIGKILL')
    await deck.exited
    await fetch(`${url}/say?text=without`)
    const next = await startReadyHere(t, 'talks-and-dies.js', { env, workers: 1, dataDir: deck.folder })
    await fetch(`${await urlOf(next)}/say?text=with+the+next`)
    assert.deepEqual((await next.api('/logs?slot=1&stream=stdout')).body.items.map(({ text }) => text), [
      'with a master',
      'without',
      'with the next'
    ])
  })

  rareTest('goes through an upgrade in place without a line lost or told twice', async (t) => {
    const deck = await startDeck(t, 'writes-lines.js', { env, workers: 1, args: [String(4 * MEGABYTE)],
      flags: ['--logs-max-bytes', '65536', '--logs-max-files', '1000', '--logs-mirror', 'on', '--ready-signal',
        'online'] })
    const { workers: [{ id }] } = await deck.until({ ready: 1 })
    const { code, stderr } = await runCliHere(['upgrade', '--wait', '--data-dir', deck.folder], {
      cwd: path.dirname(deck.folder)
    })
    assert.equal(code, 0, stderr)
    await deck.meetNext()
    await deck.untilEvent('worker.exited', { worker: id })
    await untilWhole(() => checkLines(path.join(deck.folder, 'logs'), 1).writers.size === 2)
    await deck.stop()
    const { writers } = checkLines(path.join(deck.folder, 'logs'), 1)
    const mirrored = deck.output.stdout.split('\n').filter((line) => /^\d+ \d+ [a-z]*\.$/.test(line))
    assert.equal(mirrored.length, [...writers.values()].reduce((sum, { lines }) => sum + lines, 0))
    assert.equal(new Set(mirrored).size, mirrored.length)
  })
})

rareTest(
  'what follows a deck goes on over the death of its master and a restart: "logs -f" with each line once, also to the end, "status --watch" with a line for each change, and with who has replaced whom',
  async (t) => {
    const deck = await startReady(t, 'ticks.js', { workers: 1 })
    const [logs, watch] = [['logs', '-f', '--lines', '1000'], ['status', '--watch']].map((words) => {
      const { child, exited, output } = spawnCli(t, [...words, '--data-dir', deck.folder])
      return { child, exited, output, lines: () => output.stdout.split('\n').slice(0, -1) }
    })
    await until(() => logs.lines().length > 0 && watch.lines().length > 0, 'the first lines')
    const before = deck.masterPid
    await deck.loseMaster()
    await deck.until({ ready: 1 })
    await until(() => watch.output.stderr.endsWith(`master ${deck.masterPid} has replaced master ${before}\n`),
      'the next master')
    const { length } = watch.lines()
    await deck.rollout('restart')
    await until(() => watch.lines().length > length, 'a line of the next master')
    for (const line of watch.lines()) assert.match(line, /^\S+Z (running|starting), release r1, [01] of 1 ready, /)
    watch.child.kill('SIGINT')
    assert.deepEqual(await watch.exited, { code: 0, signal: null })
    await deck.stop()
    const written = read(deck, 'stdout').trim().split('\n')
    await until(() => logs.lines().length >= written.length, 'the last line')
    assert.deepEqual(logs.lines().map((line) => line.replace('1 stdout | ', '')), written)
  }
)

async function urlOf (deck: DeckClient) {
  const { app: { addresses } } = await deck.untilStatus(
    (status) => status.readyWorkers === 1 && status.app.addresses.length > 0,
    'a worker that listens'
  )
  return String(addresses.at(-1))
}

function read ({ folder }: DeckClient, stream: string) {
  return readFileSync(path.join(folder, 'logs', `slot-1.${stream}.log`), 'utf8')
}

/** How many files of the log tell that a process has written all that it had. */
function filesWithEnds ({ folder }: DeckClient) {
  const logs = path.join(folder, 'logs')
  return readdirSync(logs).filter((name) => readFileSync(path.join(logs, name)).includes(' end ')).length
}

async function untilWhole (isSo: () => boolean) {
  for (let tries = 0;; tries++) {
    try {
      if (isSo()) return
    } catch (error) {
      // While it is written a line may be seen half, and a part move; what stays so is wrong.
      if (tries > 100) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
