// Each fault in one app of a host while eleven others are asked, and what can happen to the host itself: `npm run
// faults:host`
//   [--only log-flood,master-kill]
// No request of the others may fail, and no turn of the event loop be late by more than LATE_MS; in what happens to the
// host, no request of anybody may fail. The table goes to the terminal, and as JSON and Markdown into
// test/faults/.results.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { createOwner } from '../support/owner.ts'
import { HOST_FAULTS, type HostFault } from './host-faults.ts'
import { openHostSite, VICTIM } from './host-site.ts'
import { isClean, judge, type Cell } from './verdict.ts'

const RESULTS = path.join(import.meta.dirname, '.results')
const LATE_MS = 50
/** A master that has no CPU for longer than this share of the time says nothing of what its apps do to each other. */
const MAX_WITHOUT_CPU = 0.25

/** `cells`: by app; `spared`: what failed of those that are not judged */
type Row = { title: string, cells: Record<string, Cell>, spared: number, latestMs: number | null, p99Ms: number | null,
  withoutCpu: number | null, problems: string[], seconds: number }

const { values: options } = parseArgs({
  options: { only: { type: 'string', default: HOST_FAULTS.map(({ name }) => name).join() } }
})
const unknown = options.only.split(',').filter((name) => !HOST_FAULTS.some((fault) => fault.name === name))
if (unknown.length > 0) {
  console.error(`--only: expected ${HOST_FAULTS.map(({ name }) => name).join()}, received ${unknown.join()}`)
  process.exit(2)
}

const rows: Row[] = []
for (const fault of HOST_FAULTS.filter(({ name }) => options.only.split(',').includes(name))) {
  process.stdout.write(`${fault.title} … `)
  if (fault.skip) {
    console.log(`skipped: ${fault.skip}`)
    continue
  }
  const row = await tryFault(fault)
  rows.push(row)
  console.log(isRowClean(row) ? 'clean' : ['NOT CLEAN', ...findingsOf(row)].join('\n    '))
}
const table = toMarkdown(rows)
mkdirSync(RESULTS, { recursive: true })
writeFileSync(path.join(RESULTS, 'host.json'), `${JSON.stringify(rows, null, 2)}\n`)
writeFileSync(path.join(RESULTS, 'host.md'), `${table}\n`)
console.log(`\n${table}\n\n${rows.filter(isRowClean).length} of ${rows.length} rows clean`)
process.exitCode = rows.every(isRowClean) ? 0 : 1

async function tryFault ({ title, act, isOfHost = false, mayRefuse = false }: HostFault): Promise<Row> {
  const owner = createOwner()
  try {
    const site = await openHostSite(owner)
    await site.load()
    const startedAt = Date.now()
    const problems: string[] = []
    await act(site).catch((error) => problems.push(error.message))
    const endedAt = Date.now()
    const delays = isOfHost ? null : (await site.delays({ startedAt, endedAt }))
    const all = await site.silence()
    problems.push(...await site.close())
    const isJudged = (name: string) => isOfHost ? !mayRefuse : name !== VICTIM
    return { title, cells: Object.fromEntries(all.filter(({ tally: { name } }) =>
      isJudged(name)
    ).map(({ tally, ledger }) => [tally.name, judge(tally, ledger, { lost: new Map() })])),
      spared: all.filter(({ tally: { name } }) =>
        !isJudged(name)
      ).reduce((sum, { tally: { failures } }) =>
        sum + failures.length, 0), latestMs: delays?.own.at(-1) ?? null,
      p99Ms: delays?.own[Math.ceil(delays.own.length * 0.99) - 1] ?? null, withoutCpu: delays?.withoutCpu ?? null,
      problems, seconds: (endedAt - startedAt) / 1000 }
  } finally {
    await owner.end()
  }
}

function isRowClean (row: Row) {
  return findingsOf(row).length === 0
}

function findingsOf ({ problems, latestMs, withoutCpu, cells }: Row): string[] {
  return [...problems,
    ...(latestMs !== null && latestMs > LATE_MS && Number(withoutCpu) <= MAX_WITHOUT_CPU
      ? [`a turn was ${latestMs.toFixed(1)} ms late`]
      : []),
    ...Object.entries(cells).filter(([, cell]) => !isClean(cell)).flatMap(([name, { evidence }]) =>
      evidence.map((each) => `${name}: ${each}`)
    )]
}

function toMarkdown (rows: Row[]) {
  const figure = (value: number | null) => value === null ? '–' : value.toFixed(1)
  return [
    '| | apps | requests | failed | hung | failed of those not judged | latest turn, ms | p99, ms | without a CPU | seconds |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows.map(({ title, cells, spared, latestMs, p99Ms, withoutCpu, seconds }) => {
      const sum = (key: 'requests' | 'failed' | 'hung') =>
        Object.values(cells).reduce((total, cell) => total + cell[key], 0)
      return `| ${title} | ${Object.keys(cells).length} | ${sum('requests')} | ${sum('failed')} | ${
        sum('hung')
      } | ${spared} | ${figure(latestMs)} | ${figure(p99Ms)} | ${
        withoutCpu === null ? '–' : `${Math.round(withoutCpu * 100)} %`
      } | ${seconds.toFixed(1)} |`
    }),
    ...rows.filter((row) => !isRowClean(row)).map((row) => `\n**${row.title}**: ${findingsOf(row).join('; ')}`)
  ].join('\n')
}
