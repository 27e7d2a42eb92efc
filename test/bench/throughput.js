// Requests per second under clusterdeck as a share of those under bare node:cluster, same app, two workers each.
// One alternates with the other in one run, because machines are noisy: `node test/bench/throughput.js [rounds]`
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'
import { startDeck } from '../support/deck.js'

const ROUNDS = Number(process.argv[2] ?? 5)
const SECONDS = 3
const WORKERS = 2
const owner = { after () {} }

const plain = spawn(process.execPath, [fileURLToPath(new URL('../fixtures/plain-cluster.js', import.meta.url)), String(WORKERS)], { stdio: ['ignore', 'pipe', 'inherit'] })
const [port] = await once(plain.stdout, 'data')
const deck = await startDeck(owner, 'answers-with-pid.js', { workers: WORKERS })
await deck.until({ ready: WORKERS })
const urls = { 'node:cluster': `http://localhost:${Number(port)}`, clusterdeck: await deck.appUrl() }

for (const [how, headers] of /** @type {const} */ ([['keep-alive', {}], ['a connection per request', { connection: 'close' }]])) {
  /** @type {number[]} */
  const ratios = []
  for (let round = 0; round < ROUNDS; round++) {
    const ours = await measure(urls.clusterdeck, headers)
    const theirs = await measure(urls['node:cluster'], headers)
    ratios.push(ours / theirs)
    console.log(`${how}: clusterdeck ${ours} req/s, node:cluster ${theirs} req/s, ratio ${(ours / theirs).toFixed(3)}`)
  }
  console.log(`${how}: median ratio ${ratios.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)].toFixed(3)}`)
}
plain.kill('SIGTERM')
await deck.stop()

/** @param {string} url @param {Record<string, string>} headers @returns {Promise<number>} requests per second */
async function measure (url, headers) {
  const { requests } = await autocannon({ url, connections: 32, duration: SECONDS, headers })
  return Math.round(requests.average)
}
