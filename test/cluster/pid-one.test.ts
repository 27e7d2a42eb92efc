import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../server/errors.ts'
import { startDeck, type Deck, type Launch, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import { WITHOUT_KOFFI, withoutNativeCalls } from '../support/service-manager.ts'

const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))
const APP = fileURLToPath(new URL('../fixtures/answers-with-pid.js', import.meta.url))
const SAYS = fileURLToPath(new URL('../fixtures/writes-lines.js', import.meta.url))
/** A process namespace of its own, as a container has it; its first process is process 1 there. */
const NAMESPACE = ['unshare', '--user', '--map-root-user', '--fork', '--pid', '--mount-proc']
const CONTAINED: Launch = { through: NAMESPACE, pidOf: ({ pid }) => childOf(pid) }
const PATIENCE_MS = 90_000
const KINDS = [['the keeper', []], ['a master without a keeper', ['--no-keeper']]] as [string, string[]][]

describe('as process 1 of a container', { skip: withoutNamespaces(), concurrency: 2 }, () => {
  for (const [who, flags] of KINDS) {
    const isVariant = flags.length > 0
    test(`${who} buries the orphans of the app, and ends with 0 at a SIGTERM`, {
      skip: withoutNativeCalls || (isVariant && rareOnly)
    }, async (t) => {
      const deck = await startDeck(t, 'leaves-orphans.js', { workers: 1, launch: CONTAINED, flags })
      const { workers: [{ pid: worker }] } = await deck.until({ ready: 1 })
      const url = await deck.appUrl()
      for (const orphan of await Promise.all(Array.from({ length: 8 }, () => ask(url)))) {
        assert.match(orphan, /^\d+$/)
        await untilOrphanIs('gone', orphan, url)
      }
      // Those that are waited for by node itself are left to it: their end is known in full.
      const rollout = await deck.rollout('restart')
      assert.equal(rollout.state, 'succeeded')
      const exit = await deck.untilEvent('worker.exited', { pid: worker })
      assert.deepEqual([exit.cause, exit.code, exit.signal], ['restart', 0, null])
      deck.signal('SIGTERM')
      assert.deepEqual(await deck.exited, { code: 0, signal: null })
    })

    test(`${who} says once that orphans stay as zombies without the native calls, and serves`, {
      skip: isVariant && rareOnly
    }, async (t) => {
      const deck = await startReady(t, 'leaves-orphans.js', { workers: 1, launch: { ...CONTAINED, ...WITHOUT_KOFFI },
        flags })
      const url = await deck.appUrl()
      const orphan = await ask(url)
      await untilOrphanIs('Z', orphan, url)
      assert.equal(deck.output.stderr,
        'clusterdeck: this is process 1, and without the optional package koffi it cannot wait for orphans: they stay as zombies\n')
    })

    test(`${who} ends with the code of a wrong command line`, { skip: isVariant && rareOnly }, async () => {
      const child = spawn(NAMESPACE[0], [...NAMESPACE.slice(1), process.execPath, CLI, 'start', 'no-such-app.js',
        ...flags], { cwd: tempFolder(), stdio: 'ignore' })
      assert.deepEqual(await once(child, 'exit'), [2, null])
    })
  }

  rareTest('a SIGTERM that comes before the master has started: the keeper lets it start, so that it can stop',
    async () => {
      const { child, exited } = startContained([])
      // The first one with a handler of its own: of SIGTERM node itself takes care until then, in vain as process 1.
      process.kill(await untilItHears('SIGHUP', child), 'SIGTERM')
      assert.deepEqual(await exited, [0, null])
    })

  rareTest('a master without a keeper ends at once by such a one: there is nothing to stop yet', async () => {
    const { child, exited } = startContained(['--no-keeper'])
    const pid = await untilItHears('SIGTERM', child)
    const timer = setInterval(() => {
      if (childOf(child.pid) === pid) process.kill(pid, 'SIGTERM')
    }, 5)
    try {
      const [code, signal] = await exited
      // What comes before our code is Node's own to take: 1 of Node 24, or the signal itself.
      assert.ok([143, 1].includes(Number(code)) || signal === 'SIGTERM', `ended with ${code ?? signal}`)
    } finally {
      clearInterval(timer)
    }
  })

  rareTest('the keeper starts the next master when one dies; a second SIGTERM ends all at once with 1', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, launch: CONTAINED })
    const keeper = Number(childOf(deck.child.pid))
    process.kill(Number(childOf(keeper)), 'SIGKILL')
    await deck.meetNext()
    await deck.until({ ready: 1 })
    await endAtOnce(deck)
  })

  rareTest('"up" shows its apps on stdout, ends them and their host at a SIGTERM, and leaves no process', async () => {
    const cwd = tempFolder()
    writeFileSync(path.join(cwd, 'clusterdeck.config.json'),
      JSON.stringify({ workers: 1, apps: { shop: { entry: APP }, log: { entry: SAYS } } }))
    const child = spawn(NAMESPACE[0], [...NAMESPACE.slice(1), process.execPath, CLI, 'up'], { cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, CLUSTERDECK_HOST_DIR: tempFolder(),
        CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running'), CLUSTERDECK_ADMIN_PORT: '0' } })
    const exited = once(child, 'exit')
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    await until(
      () => [/^shop \| is ready$/m, /^log {2}\| is ready$/m, /^log {2}\| \S/m].every((line) => line.test(output)),
      () => output
    )
    process.kill(Number(childOf(child.pid)), 'SIGTERM')
    assert.deepEqual(await exited, [0, null], output)
    assert.match(output, /^shop \| stopped$/m)
  })

  rareTest('a second SIGTERM ends a master without a keeper at once with 1 as well', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, launch: CONTAINED, flags: ['--no-keeper'] })
    await endAtOnce(deck)
  })
})

/** By two signals, while somebody waits for an answer. */
async function endAtOnce (deck: Deck) {
  const hanging = await fetch(`${await deck.appUrl()}/?ms=60000&begin`)
  deck.signal('SIGTERM')
  await deck.untilEvent('worker.draining', { cause: 'shutdown' })
  deck.signal('SIGTERM')
  assert.deepEqual(await deck.exited, { code: 1, signal: null })
  await assert.rejects(hanging.text())
}

function startContained (flags: string[]) {
  const words = ['start', APP, '--workers', '1', '--admin-port', '0', '--data-dir', tempFolder(), ...flags]
  const child = spawn(NAMESPACE[0], [...NAMESPACE.slice(1), process.execPath, CLI, ...words], { stdio: 'ignore' })
  return { child, exited: once(child, 'exit') }
}

async function ask (url: string): Promise<string> {
  return await (await fetch(url, { headers: { connection: 'close' } })).text()
}

/** Asks until it is so, as the end of a grandchild is told to nobody. `orphan`: its pid there. */
async function untilOrphanIs (wanted: 'gone' | 'Z', orphan: string, url: string) {
  const startedAt = performance.now()
  let state = ''
  while (state !== wanted) {
    state = await ask(`${url}/?pid=${orphan}`)
    assert.ok(performance.now() - startedAt < PATIENCE_MS, `orphan ${orphan} is ${state}, not ${wanted}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Waits until a process has a handler for it: without one, process 1 never sees it. */
async function untilItHears (signal: NodeJS.Signals, parent: { pid?: number, exitCode: number | null }) {
  const bit = 1n << BigInt(constants.signals[signal] - 1)
  while (parent.exitCode === null) {
    const pid = childOf(parent.pid)
    const caught = pid && /^SigCgt:\s+([\da-f]+)$/m.exec(read(`/proc/${pid}/status`))?.[1]
    if (pid && (BigInt(`0x${caught || '0'}`) & bit) !== 0n) return pid
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  throw new Error('it ended first')
}

/** @returns its first child */
function childOf (pid: number | undefined): number | undefined {
  const [child] = read(`/proc/${pid}/task/${pid}/children`).split(' ')
  return child ? Number(child) : undefined
}

function read (file: string) {
  // The process has ended.
  return attempt(() => readFileSync(file, 'utf8'), '')
}

/** @returns why there can be none; false where there can */
function withoutNamespaces (): string | false {
  const { status, stderr, error } = spawnSync(NAMESPACE[0], [...NAMESPACE.slice(1), 'true'], { encoding: 'utf8' })
  return status === 0 ? false : `unshare is not permitted here: ${(error?.message ?? stderr).trim()}`
}
