import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.js'
import { startDeckHere } from '../support/deck-here.js'
import { until } from '../support/until.js'

const skip = process.platform !== 'linux' && 'the kernel has no such queue'
const [WORKERS, EACH] = [4, 10]
/** Each waits anew once a second too, and so may miss a turn. */
const MISSED = 5

test('connections that come one by one go to each worker in turn, and past one that is busy', { skip }, async (t) => {
  const deck = await startDeckHere(t, 'hangs.js', { workers: WORKERS })
  await deck.until({ ready: WORKERS })
  await untilSpread(deck, true)
  assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout, /^dispatch shared, even$/m)
  const { port } = new URL(await deck.appUrl())

  assertEven(await connectInTurn(t, port, WORKERS * EACH), WORKERS)

  const busy = ask(await connect(t, port), '/busy?ms=2000')
  let isBusy = true
  const busyPid = busy.then((pid) => { isBusy = false; return pid })
  const others = await connectInTurn(t, port, (WORKERS - 1) * EACH)
  assert.ok(isBusy, 'nobody has waited for the busy one')
  assert.equal(others.includes(await busyPid), false)
  assertEven(others, WORKERS - 1)

  // A worker that comes later takes its turn too, and one that has gone leaves none out.
  await deck.rollout('restart')
  await untilSpread(deck, true)
  assertEven(await connectInTurn(t, port, WORKERS * EACH), WORKERS)
})

test('serves, and says that it is uneven, where workers may load nothing native', { skip }, async (t) => {
  const deck = await startDeckHere(t, 'hangs.js', { flags: ['--exec-argv=--no-addons'] })
  await deck.until({ ready: 2 })
  await untilSpread(deck, false)
  assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout, /^dispatch shared, uneven: that takes Linux and the optional package koffi$/m)
  assert.equal((await connectInTurn(t, new URL(await deck.appUrl()).port, 10)).length, 10)
})

/** A worker says so some time after it is ready, and no event tells of it. @param {import('../support/deck-here.js').DeckHere} deck @param {boolean} isEven */
async function untilSpread (deck, isEven) {
  await until(async () => (await deck.status()).isEven === isEven, `isEven: ${isEven}`)
}

/** @param {string[]} pids who answered @param {number} workers */
function assertEven (pids, workers) {
  const counts = [...new Set(pids)].map((one) => pids.filter((pid) => pid === one).length)
  assert.equal(counts.length, workers)
  assert.ok(Math.max(...counts) <= EACH + MISSED, `${counts} of ${EACH} each`)
}

/** Each stays open while the next one comes. @param {import('node:test').TestContext} t @param {string} port @param {number} count @returns {Promise<string[]>} who answered */
async function connectInTurn (t, port, count) {
  const pids = []
  for (let n = 0; n < count; n++) pids.push(await ask(await connect(t, port), '/'))
  return pids
}

/** @param {import('node:test').TestContext} t @param {string} port */
async function connect (t, port) {
  const socket = net.connect(Number(port), '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** @param {net.Socket} socket @param {string} path @returns {Promise<string>} the pid that answers */
async function ask (socket, path) {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  return String(/\r\n\r\n(\d+)/.exec(String(answer))?.[1])
}
