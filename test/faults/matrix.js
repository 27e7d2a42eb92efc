// Every fault under every load, each on a deck of its own: `npm run faults`, or `npm run faults -- --only kill-one,http2`
// With --short what clients ask for is smaller and quicker, and so is the whole.
// Progress and table go to the terminal, and the table as JSON and Markdown into test/faults/.results. An unclean cell ends it with 1.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { FAULTS } from './faults.js'
import { FULL, LOADS, SHORT } from './loads.js'
import { isRowClean, summarize, toMarkdown } from './report.js'
import { tryFault } from './trial.js'
import { createOwner } from '../support/owner.js'

const RESULTS = path.join(import.meta.dirname, '.results')

const { values: options } = parseArgs({ options: { only: { type: 'string' }, short: { type: 'boolean' } } })
const { faults, loads } = choose(options.only)
/** @type {import('./trial.js').Row[]} */
const rows = []
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
console.log(`\n${table}\n\n${rows.filter(isRowClean).length} of ${rows.length} rows clean; ${path.relative(process.cwd(), RESULTS)}/matrix.{json,md}`)
process.exitCode = rows.every(isRowClean) ? 0 : 1

/** @param {string} [only] names of faults and loads; where none of a kind is named, all of them */
function choose (only) {
  const names = only?.split(',') ?? []
  const unknown = names.filter((name) => ![...FAULTS, ...LOADS].some((each) => each.name === name))
  if (unknown.length > 0) {
    console.error(`--only: expected ${[...FAULTS, ...LOADS].map(({ name }) => name).join(', ')}, received ${unknown.join(', ')}`)
    process.exit(2)
  }
  const named = (/** @type {any} */ all) => all.filter((/** @type {{ name: string }} */ { name }) => names.includes(name))
  return { faults: orAll(named(FAULTS), FAULTS), loads: orAll(named(LOADS), LOADS) }
}

/** @template T @param {T[]} some @param {readonly T[]} all */
function orAll (some, all) {
  return some.length > 0 ? some : all
}
