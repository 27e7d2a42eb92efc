// What happens to requests when masters die and change and workers are replaced, with figures: `npm run faults`
// All the time: 200 fresh connections a second and 32 that ask without pause; 16 long HTTP/2 sessions with four streams
// each, and as many clients with a new session for every request; 8 long gRPC channels, and as many new ones. Those of
// HTTP/2 and gRPC pause after each answer, as this process would be too busy otherwise to be a fair client.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { identify, isAlive } from '../../server/system/process-identity.js'
import { runCli, startDeck } from '../support/deck.js'
import { createInstallation } from '../support/install.js'
import { hammerGrpc } from '../support/grpc-load.js'
import { hammerHttp2 } from '../support/http2-load.js'
import { hammer, openFreshConnections } from '../support/load.js'
import { freePort } from '../support/ports.js'

const PAUSE_MS = 20
const owner = { after () {} }
const { cli, install } = createInstallation()
const [httpPort, http2Port, grpcPort] = [await freePort(), await freePort(), await freePort()]
const deck = await startDeck(owner, 'speaks-many-protocols.cjs', { cli, env: { PORTS: [httpPort, http2Port, grpcPort].join() } })
await deck.until({ ready: 2 })
const descriptors = countDescriptors()

const post = (/** @type {string} */ where, /** @type {object} */ body, method = 'POST') => deck.api(where, { method, body: JSON.stringify(body) })
/** @type {[name: string, begin: () => Promise<unknown>, workers: number][]} */
const MOMENTS = [
  ['idle', async () => {}, 2],
  ['a deploy', () => post('/rollouts', { kind: 'deploy' }), 2],
  ['a scale up', () => post('/scale', { workers: 4 }, 'PUT'), 4],
  ['workers booting', () => deck.loseMaster(), 4],
  ['a restart', () => post('/rollouts', { kind: 'restart' }), 4],
  ['a scale down', () => post('/scale', { workers: 2 }, 'PUT'), 2],
  ['a deploy', () => post('/rollouts', { kind: 'deploy' }), 2],
  ['workers booting', () => deck.loseMaster(), 2]
]
await underLoad('ten restarts', async () => {
  for (let count = 0; count < 10; count++) {
    const { state, reason } = await deck.rollout('restart')
    if (state !== 'succeeded') console.log(`  a restart ${state}: ${reason}`)
  }
})

await underLoad('the master SIGKILLed ten times', async () => {
  for (const [name, begin, workers] of MOMENTS) {
    await begin()
    const waitMs = Math.random() * 200
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    await deck.loseMaster()
    await deck.until({ ready: workers })
    console.log(`  ${name}, ${Math.round(waitMs)} ms after it began`)
  }
})

await underLoad('master and workers SIGKILLed at once', async () => {
  const { workers } = await deck.status()
  await deck.loseMaster(workers.map((/** @type {any} */ { pid }) => pid))
  await deck.until({ ready: 2 })
})

await underLoad('three upgrades and one to a version whose workers do not boot', async () => {
  for (const [version, broken] of /** @type {[string, Record<string, string>?][]} */ ([['1.1.0'], ['1.2.0'], ['1.3.0', { 'workers/preload.js': 'process.exit(1)' }], ['1.4.0']])) {
    await install(version, broken)
    const startedAt = performance.now()
    const { stdout, stderr } = await runCli(['upgrade', '--wait', '--data-dir', deck.folder], { cwd: path.dirname(deck.folder) })
    console.log(`  ${(stdout || stderr).trim().split('\n').at(-1)} (${Math.round(performance.now() - startedAt)} ms)`)
    if (!broken) await deck.nextMaster()
    await deck.until({ ready: 2 })
  }
})

console.log(`descriptors of the keeper: ${descriptors} before, ${countDescriptors()} after`)
await deck.stop()
const db = new Database(path.join(deck.folder, 'history.db'), { readonly: true })
const pids = (/** @type {string} */ type) => db.prepare('SELECT pid FROM events WHERE type = ?').pluck().all(type)
const [forked, exited] = [pids('worker.forked'), pids('worker.exited')]
console.log(`history: ${db.pragma('integrity_check', { simple: true })}, ${forked.length} forks, ${exited.length} exits; still alive: ${forked.filter((pid) => isAlive(identify(Number(pid)))).length}`)
db.close()

/** @param {string} what @param {() => Promise<void>} act */
async function underLoad (what, act) {
  console.log(what)
  const url = `http://127.0.0.1:${httpPort}`
  const loads = {
    fresh: openFreshConnections(url, { perSecond: 200 }),
    'keep-alive': hammer(url),
    'HTTP/2 sessions': hammerHttp2(`http://127.0.0.1:${http2Port}`, { streams: 4, pauseMs: PAUSE_MS }),
    'HTTP/2 new': hammerHttp2(`http://127.0.0.1:${http2Port}`, { isKept: false, pauseMs: PAUSE_MS }),
    'gRPC channels': hammerGrpc(`127.0.0.1:${grpcPort}`, { pauseMs: PAUSE_MS }),
    'gRPC new': hammerGrpc(`127.0.0.1:${grpcPort}`, { isKept: false, pauseMs: PAUSE_MS })
  }
  await act()
  const results = await Promise.all(Object.entries(loads).map(async ([name, load]) => /** @type {const} */ ([name, await load.stop()])))
  console.log(`  ${results.map(([name, result]) => `${name}: ${result.failures.length} of ${result.total} failed${slowest(result)}`).join('; ')}`)
  for (const [name, { failures }] of results) if (failures.length > 0) console.log(`  ${name}: ${tally(failures)}`)
}

/** @param {object} result of a load, which may have looked for it */
function slowest (result) {
  return 'slowestMs' in result ? `, slowest ${result.slowestMs} ms` : ''
}

/** @param {string[]} failures @returns {string} each kind with its count */
function tally (failures) {
  const counts = new Map()
  for (const failure of failures) counts.set(failure, (counts.get(failure) ?? 0) + 1)
  return [...counts].map(([failure, count]) => `${count} × ${failure}`).join(', ')
}

function countDescriptors () {
  return readdirSync(`/proc/${deck.child.pid}/fd`).length
}
