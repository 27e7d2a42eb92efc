// Every fault under every load, each on a deck of its own: `npm run faults`, or `npm run faults -- --only
// kill-one,http2` With --short what clients ask for is smaller and quicker, and so is the whole.
import { parseArgs } from 'node:util'
import { FAULTS } from './faults.ts'
import { FULL, LOADS, SHORT } from './loads.ts'
import { isRowClean, summarize, toMarkdown } from './report.ts'
import { chooser, tryEach } from './results.ts'
import { tryFault } from './trial.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' }, short: { type: 'boolean' } } })
const isNamed = chooser(options.only, [...FAULTS, ...LOADS])
/** Where none of a kind is named, all of them. */
const namedOf = <T extends { name: string }>(all: readonly T[]) => all.some(isNamed) ? all.filter(isNamed) : all
const [faults, loads] = [namedOf(FAULTS), namedOf(LOADS)]
await tryEach('matrix', faults, (owner, fault) => tryFault(owner, fault, loads, options.short ? SHORT : FULL), {
  isClean: isRowClean,
  summarize,
  toMarkdown: (rows) => toMarkdown(rows, faults, loads)
})
