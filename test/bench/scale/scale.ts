// What workers, apps, events and hosts cost, each, and whether four times as many cost more than four times as much:
//   npm run bench:scale -- [simulated|real|fleet …] [--small] [--rounds 5] [--seconds 20] [--write]
// `simulated`: the master's own work, with workers, apps and hosts that are not there, over a real database and real
// pages; `real`: processes and their memory; `fleet`: members of a real NATS server (NATS_SERVER). `--write` puts the
// tables into the manual.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { withTable } from '../../support/manual-tables.ts'
import { withoutNats } from '../../support/nats.ts'
import { createOwner } from '../../support/owner.ts'
import { APP_PARTS } from './apps.ts'
import { EVENT_PARTS } from './events.ts'
import { HOST_PARTS } from './hosts.ts'
import { eachMore, growthOf, measure, type Cost, type Part } from './measure.ts'
import { REAL } from './real.ts'
import { bytesText, msText, row } from './table.ts'
import { WORKER_PARTS } from './workers.ts'

const MANUAL = new URL('../../../views/docs/limits.md', import.meta.url)
/** Four times as many as these are the most. */
const FEW = Object.freeze({ worker: 16, app: 15, event: 250_000, host: 125 })
const FEW_REAL = Object.freeze({ worker: 4, app: 4 })
const SMALL = Object.freeze({ worker: 8, app: 5, event: 5000, host: 50 })

const { values: options, positionals } = parseArgs({ allowPositionals: true,
  options: { small: { type: 'boolean', default: false }, rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '20' }, write: { type: 'boolean', default: false } } })
const KINDS = { simulated: tableOfParts, real: tableOfProcesses, fleet: tableOfFleet }
const chosen = (positionals.length > 0 ? positionals : Object.keys(KINDS)) as (keyof typeof KINDS)[]

const owner = createOwner()
const tables = []
for (const kind of chosen) {
  if (kind === 'fleet' && withoutNats) console.log(`fleet: left out, ${withoutNats}`)
  else tables.push(await KINDS[kind]())
}
const machine = `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version.slice(1)}`
const written = `\nMeasured on ${machine}, by \`npm run bench:scale\`.\n\n${tables.join('\n')}\n`
console.log(written)
if (options.write) writeFileSync(MANUAL, withTable(readFileSync(MANUAL, 'utf8'), 'scale', written))
// The admin ports of the parts keep timers.
process.exit()

async function tableOfParts () {
  const few = options.small ? SMALL : FEW
  const lines = [
    row('CPU time of the master for', 'with', 'each time', 'with', 'each time', 'each more', 'four times as many'),
    row('---', ...Array(6).fill('---:'))
  ]
  for (const part of [WORKER_PARTS, APP_PARTS, HOST_PARTS, EVENT_PARTS].flatMap((parts) => Object.values(parts))) {
    const [less, more] = [await measureOne(part, few[part.unit]), await measureOne(part, 4 * few[part.unit])]
    lines.push(
      row(part.title,
        ...[less, more].flatMap((cost) => [`${cost.n.toLocaleString('en')} ${part.unit}s`, costText(cost)]),
        moreText(less, more), `${(4 * growthOf(less, more, 'cpuMs')).toFixed(1)} × as much`)
    )
    console.log(lines.at(-1))
  }
  return `${lines.join('\n')}\n`
}

function measureOne (part: Part, n: number) {
  return measure(part, n, { rounds: Number(options.rounds) })
}

function costText ({ cpuMs, bytes }: Cost) {
  return [msText(cpuMs), ...(bytes === null ? [] : [bytesText(bytes)])].join(', ')
}

function moreText (less: Cost, more: Cost) {
  const bytes = more.bytes === null ? [] : [bytesText(eachMore(less, more, 'bytes'))]
  return [msText(Math.max(0, eachMore(less, more, 'cpuMs'))), ...bytes].join(', ')
}

async function tableOfProcesses () {
  const lines = [row('Real processes', 'with', '', 'with', '', 'each more'), row('---', ...Array(5).fill('---:'))]
  for (const unit of ['worker', 'app'] as const) {
    const counts = [FEW_REAL[unit], (options.small ? 2 : 4) * FEW_REAL[unit]]
    const [less, more] = [await measureReal(unit, counts[0]), await measureReal(unit, counts[1])]
    for (const name of Object.keys(less)) {
      const each = (more[name] - less[name]) / (counts[1] - counts[0])
      lines.push(
        row(name, `${counts[0]} ${unit}s`, less[name].toFixed(1), `${counts[1]} ${unit}s`, more[name].toFixed(1),
          each.toFixed(2))
      )
      console.log(lines.at(-1))
    }
  }
  return `${lines.join('\n')}\n`
}

async function measureReal (unit: 'worker' | 'app', n: number) {
  try {
    return await REAL[unit].measure(n, owner, Number(options.seconds))
  } finally {
    await owner.end()
  }
}

async function tableOfFleet () {
  const few = options.small ? SMALL.host : FEW.host
  const [less, more] = [await measureFleet(few), await measureFleet(4 * few)]
  const lines = [row('A fleet', ...[few, 4 * few].map((n) => `${n} hosts`)), row('---', '---:', '---:')]
  for (const name of Object.keys(less)) lines.push(row(name, less[name].toFixed(1), more[name].toFixed(1)))
  return `${lines.join('\n')}\n`
}

/** In a process of its own, whose CPU time is that of the members alone. */
async function measureFleet (members: number): Promise<Record<string, number>> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('fleet.ts', import.meta.url)), String(members)], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  owner.spawned(child)
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return JSON.parse(output)
}
