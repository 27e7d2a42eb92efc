import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { createKeepAlives } from '../long-lived/clients/keep-alive.ts'
import { runCliHere } from '../support/cli-here.ts'
import { type DeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { rareOnly } from '../support/rare.ts'
import { withoutNativeCalls } from '../support/service-manager.ts'
import { until } from '../support/until.ts'

const skip = process.platform !== 'linux' && 'the kernel has no such queue'
const [WORKERS, EACH] = [4, 10]
/** Each waits anew once a second too, and so may miss a turn: on a busy machine a round takes seconds. */
const [MISSED, ROUNDS] = [5, 5]

test('connections that come one by one go to each worker in turn, and past one that is busy', {
  skip: skip || withoutNativeCalls
}, async (t) => {
  const folder = tempFolder()
  const deck = await startReadyHere(t, 'hangs.js', { workers: WORKERS, env: { FOLDER: folder } })
  await untilSpread(deck, true)
  assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout, /^dispatch shared, even$/m)
  const { port } = new URL(await deck.appUrl())

  await assertEven(t, port, WORKERS)

  const held = ask(await connect(t, port), '/held')
  await until(() => existsSync(path.join(folder, 'held')), 'one to be busy')
  const others = await assertEven(t, port, WORKERS - 1)
  writeFileSync(path.join(folder, 'free'), '')
  assert.equal(others.includes(await held), false)

  // A worker that comes later takes its turn too, and one that has gone leaves none out.
  await deck.rollout('restart')
  await untilSpread(deck, true)
  await assertEven(t, port, WORKERS)
})

test('serves, and says that it is uneven, where workers may load nothing native', { skip: skip || rareOnly },
  async (t) => {
    const deck = await startReadyHere(t, 'hangs.js', { flags: ['--exec-argv=--no-addons'] })
    await untilSpread(deck, false)
    assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout,
      /^dispatch shared, uneven: that takes Linux and the optional package koffi$/m)
    assert.equal((await connectInTurn(t, new URL(await deck.appUrl()).port, 10)).length, 10)
  })

test(
  'connections that stay, and were opened while one of two workers was busy, give each its share of requests before long',
  { skip: skip || rareOnly },
  async (t) => {
    const folder = tempFolder()
    const deck = await startReadyHere(t, 'hangs.js', { env: { FOLDER: folder } })
    const port = new URL(await deck.appUrl()).port
    const held = ask(await connect(t, port), '/held')
    await until(() => existsSync(path.join(folder, 'held')), 'one to be busy')
    const clients = createKeepAlives({ port: Number(port), everyMs: 20 })
    t.after(clients.end)
    await clients.add(16)
    writeFileSync(path.join(folder, 'free'), '')
    const wasBusy = await held
    await until(() => {
      const last = clients.answers.slice(-500)
      return last.length === 500 && last.filter(({ pid }) => pid === wasBusy).length > 200
    }, 'two fifths of the requests')
    assert.deepEqual(clients.answers.filter(({ pid }) => !Number(pid)), [], 'each is answered')
  }
)

/** A worker says so some time after it is ready, and no event tells of it. */
async function untilSpread (deck: DeckHere, isEven: boolean) {
  await until(async () => (await deck.status()).isEven === isEven, `isEven: ${isEven}`)
}

/** `workers`: that take part. Returns who answered, each once. */
async function assertEven (t: TestContext, port: string, workers: number): Promise<string[]> {
  const seen = []
  while (seen.length < ROUNDS) {
    const pids = await connectInTurn(t, port, workers * EACH)
    const all = [...new Set(pids)]
    const counts = all.map((one) => pids.filter((pid) => pid === one).length)
    seen.push(counts)
    if (counts.length === workers && Math.max(...counts) <= EACH + MISSED) return all
  }
  assert.fail(`of ${EACH} each, in ${ROUNDS} rounds: ${seen.map(String).join(' | ')}`)
}

/** Each stays open while the next one comes. Returns who answered. */
async function connectInTurn (t: TestContext, port: string, count: number): Promise<string[]> {
  const pids = []
  for (let n = 0; n < count; n++) pids.push(await ask(await connect(t, port), '/'))
  return pids
}

async function connect (t: TestContext, port: string) {
  const socket = net.connect(Number(port), '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** @returns the pid that answers */
async function ask (socket: net.Socket, path: string): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  return String(/\r\n\r\n(\d+)/.exec(String(answer))?.[1])
}
