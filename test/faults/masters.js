// What happens to requests when masters die and change, with figures: `npm run faults`
// 200 fresh connections a second and 32 that ask without pause, all the time.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { identify, isAlive } from '../../server/process-identity.js'
import { runCli, startDeck } from '../support/deck.js'
import { createInstallation } from '../support/install.js'
import { hammer, openFreshConnections } from '../support/load.js'

const owner = { after () {} }
const { cli, install } = createInstallation()
const deck = await startDeck(owner, 'answers-with-pid.js', { cli })
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
  const url = await deck.appUrl()
  const [fresh, kept] = [openFreshConnections(url, { perSecond: 200 }), hammer(url)]
  await act()
  const [{ total, failures, slowestMs }, { total: requests, failures: keptFailures }] = [await fresh.stop(), await kept.stop()]
  console.log(`  fresh: ${failures.length} of ${total} failed ${failures.join(' ')}, slowest ${slowestMs} ms; keep-alive: ${keptFailures.length} of ${requests} failed ${keptFailures.join(' ')}`)
}

function countDescriptors () {
  return readdirSync(`/proc/${deck.child.pid}/fd`).length
}
