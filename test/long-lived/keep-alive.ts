// Connections that stay, opened at a moment when one of the workers was busy: how the requests are shared from then on.
//   node test/long-lived/keep-alive.ts [--connections 32] [--workers 2] [--everyMs 50] [--seconds 60] [--flag=--rebalance=off]
import http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { toTable } from '../apps/report.ts'
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { freePort } from '../support/ports.ts'
import { askOnce, createKeepAlives } from './clients/keep-alive.ts'
import { countBy } from './count-by.ts'

const { values } = parseArgs({
  options: { connections: { type: 'string', default: '32' }, workers: { type: 'string', default: '2' },
    everyMs: { type: 'string', default: '50' }, seconds: { type: 'string', default: '60' },
    flag: { type: 'string', multiple: true, default: [] } }
})
const WORKERS = Number(values.workers)
const STEP_S = 10
const BUSY_MS = 3000

const port = await freePort()
const owner = createOwner()
const deck = await startDeck(owner, 'hangs.js', { workers: WORKERS, env: { PORT: String(port) }, flags: values.flag })
await deck.until({ ready: WORKERS })
const busy = askOnce(port, new http.Agent(), () => {}, `/busy?ms=${BUSY_MS}`)
await wait(200)
const clients = createKeepAlives({ port, everyMs: Number(values.everyMs) })
await clients.add(Number(values.connections))
const was = await busy
const begunAt = performance.now()
const rows: (string | number)[][] = []
let [seen, opened] = [0, clients.connections()]
for (let second = STEP_S; second <= Number(values.seconds); second += STEP_S) {
  await wait(begunAt + second * 1000 - performance.now())
  const counts = countBy(clients.answers.slice(seen), ({ pid }) => pid)
  const total = clients.answers.length - seen
  const shares = Object.entries(counts).map(([pid, count]) =>
    `${pid === was ? 'was busy: ' : ''}${(100 * count / total).toFixed(1)} %`
  ).sort()
  const largest = Math.max(...Object.values(counts)) / (total / WORKERS)
  rows.push([`${second - STEP_S} to ${second}`, total, shares.join(', '), largest.toFixed(3),
    clients.connections() - opened])
  process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`)
  seen = clients.answers.length
  opened = clients.connections()
}
clients.end()
console.log(toTable(['seconds', 'requests', 'shares', 'largest ÷ mean', 'connections opened again'], rows))
console.log(`\n${clients.answers.filter(({ pid }) => !/^\d+$/.test(pid)).length} requests failed`)
await owner.end()
process.exit()
