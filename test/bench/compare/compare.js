// clusterdeck beside its peers, in one run: `npm run bench`, `npm run bench -- --quick`.
//   [row …] [--quick] [--rounds 3] [--seconds 1] [--peers clusterdeck,pm2] [--json FILE] [--write]
// A quick run, of under three minutes, has one round of the rows that say most.
// The peers are installed at first use. `--write` puts the report into RESULTS.md and its short table into the README.
import { readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import { parseArgs } from 'node:util'
import { freePort } from '../../support/ports.js'
import { installPeers } from './install.js'
import { ALL, VARIANTS } from './peers.js'
import { report, shortTable, tableOf } from './results.js'
import { combine, ratiosOf, ROWS } from './rows.js'

const README = new URL('../../../README.md', import.meta.url)
const RESULTS = new URL('../RESULTS.md', import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

const OPTIONS = /** @type {const} */ ({
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  seconds: { type: 'string', default: '1' },
  peers: { type: 'string', default: Object.keys(ALL).join() },
  json: { type: 'string' },
  write: { type: 'boolean', default: false }
})

const { values, positionals } = readArguments()
const rounds = Number(values.rounds ?? (values.quick ? 1 : 3))
const pace = { rounds, seconds: Number(values.seconds), connections: values.quick ? [32] : [1, 8, 32, 100] }
const wanted = values.peers.split(',')
for (const name of [...wanted.filter((name) => !ALL[name]), ...positionals.filter((name) => !ROWS[name])]) {
  console.error(`expected peers of ${Object.keys(ALL).join()} and rows of ${Object.keys(ROWS).join(' ')}, received ${name}`)
  process.exit(2)
}

const begunAt = performance.now()
const versions = await installPeers()
/** @type {Record<string, import('./results.js').Result>} */
const rows = {}
/** @type {Map<string, import('./peers.js').Running>} */
const running = new Map()
/** What runs was started for. @type {import('./rows.js').Row | null} */
let startedFor = null
for (const [name, row] of Object.entries(ROWS)) {
  if (positionals.length > 0 ? !positionals.includes(name) : values.quick && row.isExtra) continue
  const result = await measureRow(row)
  rows[name] = result
  console.log(`\n${result.title}\n${tableOf(result)}`)
}
await stopAll()
const results = {
  date: new Date().toISOString().slice(0, 10),
  machine: `${os.cpus()[0].model}, ${os.availableParallelism()} cores, ${Math.round(os.totalmem() / 1024 ** 3)} GB, Linux ${os.release()}`,
  versions: `clusterdeck ${version}, PM2 ${versions.pm2}, both and node:cluster on Node ${process.versions.node}; Watt ${versions.wattpm} on Node ${versions.node}`,
  pace: `${rounds} round${rounds === 1 ? '' : 's'}, ${pace.seconds} s each; ${Math.round((performance.now() - begunAt) / 1000)} s in all.`,
  rows
}
console.log(`\n${results.date}, ${results.machine}. ${results.versions}. ${results.pace}`)
if (values.json) writeFileSync(values.json, JSON.stringify(results, null, 2))
if (values.write) {
  writeFileSync(RESULTS, report(results))
  writeFileSync(README, readFileSync(README, 'utf8').replace(/<!-- compared -->.*<!-- \/compared -->\n/s, () => shortTable(rows)))
}

function readArguments () {
  try {
    return parseArgs({ allowPositionals: true, options: OPTIONS })
  } catch (/** @type {any} */ error) {
    console.error(`${error.message}\nexpected [${Object.keys(ROWS).join('|')} …] ${Object.keys(OPTIONS).map((name) => `[--${name}]`).join(' ')}`)
    process.exit(2)
  }
}

/** @param {import('./rows.js').Row} row whether those that run for the row before may do for this one */
function canGoOn (row) {
  return values.quick && row.isGentle && startedFor?.isGentle && startedFor.workers === row.workers
}

async function stopAll () {
  for (const one of running.values()) await one.stop()
  running.clear()
}

/** @param {import('./rows.js').Row} row @returns {Promise<import('./results.js').Result>} */
async function measureRow (row) {
  const known = { ...ALL, ...VARIANTS }
  const names = [...wanted.filter((name) => !row.without?.includes(name)), ...wanted.includes('clusterdeck') ? row.also ?? [] : []]
  /** @type {Map<string, import('./rows.js').Cell[]>} */
  const cells = new Map()
  /** @type {Map<string, string>} */
  const problems = new Map()
  const { starts, turns } = row.often ? { ...row.often, ...values.quick && { starts: 1, turns: 6 } } : { starts: 1, turns: pace.rounds }
  for (let n = 0; n < starts; n++) {
    if (!canGoOn(row)) await stopAll()
    startedFor = row
    for (const name of names) if (row.measure && !running.has(name)) await attempt(name, async () => { running.set(name, await known[name].start(row.workers, await freePort())) })
    for (let turn = 0; turn < turns; turn++) {
      for (const name of turn % 2 ? names.toReversed() : names) await attempt(name, () => measure(name, running.get(name)))
    }
  }
  const more = row.ratio && ratiosOf(cells, row.ratio)
  const peers = Object.fromEntries(names.map((name) => {
    const measured = cells.get(name)
    return [known[name].name, measured ? { ...combine(measured), ...more?.get(name) } : { problem: problems.get(name) ?? 'not measured' }]
  }))
  return { title: row.title, figures: row.figures.length > 0 ? row.figures : pace.connections.map(String), peers }

  /** @param {string} name @param {import('./peers.js').Running} [one] */
  async function measure (name, one) {
    const cell = one ? await row.measure?.(one, pace) : await row.measureFrom?.(known[name], pace)
    if (cell) cells.set(name, [...cells.get(name) ?? [], cell])
  }

  /** @param {string} name @param {() => Promise<void>} act */
  async function attempt (name, act) {
    if (problems.has(name)) return
    try {
      await act()
    } catch (/** @type {any} */ error) {
      problems.set(name, `failed: ${String(error.message).split('\n')[0].slice(0, 80)}`)
    }
  }
}
