// Every fault under every load, each on a deck of its own: `npm run faults`, or `npm run faults -- --only
// kill-one,http2` With --short what clients ask for is smaller and quicker, and so is the whole.
// Progress and table go to the terminal, and the table as JSON and Markdown into test/faults/.results. An unclean cell
// ends it with 1.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { FAULTS } from './faults.ts'
import { FULL, LOADS, SHORT } from './loads.ts'
import { isRowClean, summarize, toMarkdown } from './report.ts'
import { tryFault, type Row } from './trial.ts'
import { createOwner } from '../support/owner.ts'

const RESULTS = path.join(import.meta.dirname, '.results')

const { values: options } = parseArgs({ options: { only: { type: 'string' }, short: { type: 'boolean' } } })
const { faults, loads } = choose(options.only)
const rows: Row[] = []
for (const fault of faults) {
  process.stdout.write(`${fault.title} … `)
  if (fault.skip) {
    console.log(`skipped: ${fault.skip}`)
    continue
  }
  const owner = createOwner()
  const row = await tryFault(owner, fault, loads, options.short ? SHORT : FULL)
  await owner.end()
  rows.push(row)
  console.log(summarize(row))
}
const table = toMarkdown(rows, faults, loads)
mkdirSync(RESULTS, { recursive: true })
writeFileSync(path.join(RESULTS, 'matrix.json'), `${JSON.stringify(rows, null, 2)}\n`)
writeFileSync(path.join(RESULTS, 'matrix.md'), `${table}\n`)
console.log(
  `\n${table}\n\n${rows.filter(isRowClean).length} of ${rows.length} rows clean; ${
    path.relative(process.cwd(), RESULTS)
  }/matrix.{json,md}`
)
process.exitCode = rows.every(isRowClean) ? 0 : 1

/** `only`: names of faults and loads; where none of a kind is named, all of them */
function choose (only?: string) {
  const names = only?.split(',') ?? []
  const unknown = names.filter((name) => ![...FAULTS, ...LOADS].some((each) => each.name === name))
  if (unknown.length > 0) {
    console.error(
      `--only: expected ${[...FAULTS, ...LOADS].map(({ name }) => name).join(', ')}, received ${unknown.join(', ')}`
    )
    process.exit(2)
  }
  const named = <T extends { name: string }>(all: readonly T[]) => all.filter(({ name }) => names.includes(name))
  return { faults: orAll(named(FAULTS), FAULTS), loads: orAll(named(LOADS), LOADS) }
}

function orAll<T> (some: T[], all: readonly T[]) {
  return some.length > 0 ? some : all
}
