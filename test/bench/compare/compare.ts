// clusterdeck beside its peers, in one run: `npm run bench`, `npm run bench -- --quick`.
//   [row …] [--quick] [--rounds 15] [--minutes 40] [--seconds 1] [--node /path/of/node] [--peers clusterdeck,pm2] [--json FILE] [--write]
// All run on the same Node. The rounds come in passes over all rows, with new processes; the first and the second half
// of the passes are two runs, and only what both say is in the README. No pass is begun that would not end within the
// minutes. A quick run, of under three minutes, has one round of the rows that say most.
// The peers are installed at first use. `--write` puts the report into RESULTS.md and its short table into the README.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { errorText } from '../../../server/errors.ts'
import { createOwner } from '../../support/owner.ts'
import { freePort } from '../../support/ports.ts'
import { canRunWatt, installPeers } from './install.ts'
import { ALL, endPeers, VARIANTS, type Running } from './peers.ts'
import { report, shortTable, tableOf, type Result } from './results.ts'
import { ROWS, type Row } from './rows.ts'
import { addRatios, summarize, verdictsOf, type Measured } from './summary.ts'

const README = new URL('../../../README.md', import.meta.url)
const RESULTS = new URL('../RESULTS.md', import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
const ROUNDS_OF_A_PASS = 5
const KNOWN = { ...ALL, ...VARIANTS }

const OPTIONS = { quick: { type: 'boolean', default: false }, rounds: { type: 'string' },
  minutes: { type: 'string', default: '40' }, seconds: { type: 'string', default: '1' },
  node: { type: 'string', default: process.execPath }, peers: { type: 'string', default: Object.keys(ALL).join() },
  json: { type: 'string' }, write: { type: 'boolean', default: false } } as const

const { values, positionals } = readArguments()
if (path.resolve(values.node) !== process.execPath) process.exit(await runOn(values.node))
// PM2 takes the node of PATH. An app is compared as it runs in production.
Object.assign(process.env, { PATH: pathWithNode(process.execPath), NODE_ENV: 'production' })

const begunAt = performance.now()
const versions = await installPeers()
const wanted = values.peers.split(',').filter((name) => name !== 'watt' || canRunWatt)
const rows = Object.entries(ROWS).filter(([name, row]) =>
  positionals.length > 0 ? positionals.includes(name) : !values.quick || !row.isExtra
)
const rounds = Number(values.rounds ?? (values.quick ? 1 : 15))
/** Rounds of each row, by peer. */
const measured: Map<Row, Map<string, Measured[]>> = new Map(rows.map(([, row]) => [row, new Map()]))
const problems: Map<Row, Map<string, string>> = new Map(rows.map(([, row]) => [row, new Map()]))
const running: Map<string, Running> = new Map()
/** What runs was started for. */
let startedFor: Row | null = null

const passes = await measureAll()
const results = { date: new Date().toISOString().slice(0, 10),
  machine: `${os.cpus()[0].model}, ${os.availableParallelism()} cores, ${
    Math.round(os.totalmem() / 1024 ** 3)
  } GB, Linux ${os.release()}`,
  versions: `clusterdeck ${version}, PM2 ${versions.pm2}, ${
    canRunWatt ? `Watt ${versions.wattpm}` : 'Watt needs a newer Node'
  }, all on Node ${process.versions.node}`,
  pace: `${passes.rounds} round${passes.rounds === 1 ? '' : 's'} in ${passes.count} pass${
    passes.count === 1 ? '' : 'es'
  }; ${Math.round((performance.now() - begunAt) / 1000)} s in all.`,
  rows: Object.fromEntries(rows.map(([name, row]) => [name, resultOf(row)])) }
for (const row of Object.values(results.rows)) console.log(`\n${row.title}\n${tableOf(row)}`)
console.log(`\n${results.date}, ${results.machine}. ${results.versions}. ${results.pace}`)
if (values.json)
  writeFileSync(values.json,
    JSON.stringify({ ...results,
      measured: Object.fromEntries(rows.map(([name, row]) => [name, Object.fromEntries(measured.get(row) ?? [])])) },
      null, 2))
if (values.write) {
  writeFileSync(RESULTS, report(results))
  writeFileSync(README, readFileSync(README, 'utf8').replace(/<!-- compared -->.*<!-- \/compared -->\n/s, () =>
    shortTable(results.rows)))
}
process.exit()

function readArguments () {
  try {
    const read = parseArgs({ allowPositionals: true, options: OPTIONS })
    const peers = read.values.peers.split(',')
    const unknown = [...peers.filter((name) => !ALL[name]), ...read.positionals.filter((name) => !ROWS[name])]
    if (unknown.length > 0)
      throw new Error(
        `expected peers of ${Object.keys(ALL).join()} and rows of ${Object.keys(ROWS).join(' ')}, received ${
          unknown.join(' ')
        }`
      )
    return read
  } catch (error) {
    console.error(
      `${errorText(error)}\nexpected [${Object.keys(ROWS).join('|')} …] ${
        Object.keys(OPTIONS).map((name) => `[--${name}]`).join(' ')
      }`
    )
    process.exit(2)
  }
}

/** The same with another Node. Returns the exit code. */
async function runOn (node: string): Promise<number> {
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' })
  const exited = once(child, 'exit')
  createOwner().after(() => {
    child.kill('SIGTERM')
    return exited
  })
  const [code] = await exited
  return code ?? 1
}

function pathWithNode (node: string) {
  return `${path.dirname(path.resolve(node))}:${process.env.PATH}`
}

/** @returns what there was time for */
async function measureAll (): Promise<{ count: number, rounds: number }> {
  const planned = Math.min(rounds, Math.max(2, Math.ceil(rounds / ROUNDS_OF_A_PASS)))
  let done = 0
  let longestMs = 0
  for (let pass = 0; pass < planned; pass++) {
    const passBegunAt = performance.now()
    if (pass > 1 && passBegunAt - begunAt + longestMs > Number(values.minutes) * 60_000)
      return { count: pass, rounds: done }
    const turns = Math.ceil((rounds - done) / (planned - pass))
    for (const [name, row] of rows) {
      if (pass > 0 && row.once === 'first pass') continue
      const rowBegunAt = performance.now()
      await measureRow(row, pass, row.once ? 1 : turns, done)
      console.error(`pass ${pass + 1} of ${planned}, ${name}: ${Math.round((performance.now() - rowBegunAt) / 1000)} s`)
    }
    await stopAll()
    done += turns
    longestMs = Math.max(longestMs, performance.now() - passBegunAt)
  }
  return { count: planned, rounds: done }
}

/** @returns flags of those that it measures */
function namesOf (row: Row): string[] {
  return [...wanted.filter((name) => !row.without?.includes(name)),
    ...row.also?.filter((name) => wanted.includes(VARIANTS[name].of)) ?? []]
}

/** `row`: whether those that run for the row before may do for this one */
function canGoOn (row: Row) {
  return row.isGentle && startedFor?.isGentle && startedFor.workers === row.workers
}

async function stopAll () {
  for (const one of running.values()) await one.stop()
  await endPeers()
  running.clear()
  startedFor = null
}

/** `first`: of these, over all passes */
async function measureRow (row: Row, pass: number, turns: number, first: number) {
  const names = namesOf(row)
  if (!canGoOn(row)) await stopAll()
  startedFor = row
  if (row.measure) {
    for (const name of names.filter((name) => !running.has(name)))
      await attempt(name, async () => {
        running.set(name, await KNOWN[name].start(row.workers, await freePort()))
      })
  }
  for (let turn = 0; turn < turns; turn++) {
    for (const name of (first + turn) % 2 ? names.toReversed() : names)
      await attempt(name, () => measure(name, running.get(name)))
  }

  async function measure (name: string, one?: Running) {
    const cell = one
      ? await row.measure?.(one, { seconds: Number(values.seconds) })
      : await row.measureFrom?.(KNOWN[name])
    const cells = measured.get(row)
    if (cell) cells?.set(name, [...cells.get(name) ?? [], { pass, cell }])
  }

  async function attempt (name: string, act: () => Promise<void>) {
    if (problems.get(row)?.has(name)) return
    try {
      await act()
    } catch (error) {
      problems.get(row)?.set(name, `failed: ${errorText(error).split('\n')[0].slice(0, 80)}`)
    }
  }
}

function resultOf (row: Row): Result {
  const names = namesOf(row)
  const known = measured.get(row) ?? new Map()
  if (row.ratios) addRatios(known, row.ratios)
  const peers = Object.fromEntries(names.map((name) => {
    const problem = problems.get(row)?.get(name)
    return [KNOWN[name].name,
      known.has(name) && !problem ? summarize(known.get(name)) : { problem: problem ?? 'not measured' }]
  }))
  const pairs: [own: string, peer: string][] = [
    ...names.filter((name) => name in ALL && name !== 'clusterdeck').map((name) =>
      ['clusterdeck', name] as [string, string]
    ),
    ...row.pairs ?? []
  ]
  const verdicts = passes.count > 1
    ? verdictsOf(row.figures.filter((figure) => !row.ratios?.[figure]), pairs, known, passes.count)
    : []
  return { title: row.title, figures: row.figures, peers,
    verdicts: verdicts.map((verdict) => ({ ...verdict, own: KNOWN[verdict.own].name,
      peer: KNOWN[verdict.peer].name })
    ) }
}
