// Each fault in one app of a host while eleven others are asked, and what can happen to the host itself: `npm run
// faults:host`
//   [--only log-flood,master-kill]
// No request of the others may fail, and no turn of the event loop be late by more than LATE_MS; in what happens to the
// host, no request of anybody may fail.
import { parseArgs } from 'node:util'
import { toTable } from '../apps/report.ts'
import { HOST_FAULTS, type HostFault } from './host-faults.ts'
import { openHostSite, VICTIM } from './host-site.ts'
import { chooser, tryEach } from './results.ts'
import { isClean, judge, type Cell } from './verdict.ts'
import type { TestOwner } from '../support/deck.ts'

const LATE_MS = 50
/** A master that has no CPU for longer than this share of the time says nothing of what its apps do to each other. */
const MAX_WITHOUT_CPU = 0.25

/** `cells`: by app; `spared`: what failed of those that are not judged */
type Row = { title: string, cells: Record<string, Cell>, spared: number, latestMs: number | null, p99Ms: number | null,
  withoutCpu: number | null, problems: string[], seconds: number }

const { values: { only } } = parseArgs({ options: { only: { type: 'string' } } })
const isNamed = chooser(only, HOST_FAULTS)
await tryEach('host', HOST_FAULTS.filter((fault) => only === undefined || isNamed(fault)), tryFault, {
  isClean: isRowClean,
  summarize: (row) => isRowClean(row) ? 'clean' : ['NOT CLEAN', ...findingsOf(row)].join('\n    '),
  toMarkdown
})

async function tryFault (owner: TestOwner,
  { title, act, isOfHost = false, mayRefuse = false }: HostFault): Promise<Row>
{
  const site = await openHostSite(owner)
  await site.load()
  const startedAt = Date.now()
  const problems: string[] = []
  await act(site).catch((error) => problems.push(error.message))
  const endedAt = Date.now()
  const delays = isOfHost ? null : (await site.delays({ startedAt, endedAt }))
  const all = await site.silence()
  problems.push(...await site.close())
  const isJudged = ({ tally: { name } }: typeof all[0]) => isOfHost ? !mayRefuse : name !== VICTIM
  const cells = all.filter(isJudged).map(({ tally, ledger }) => [tally.name, judge(tally, ledger, { lost: new Map() })])
  const spared = all.filter((each) => !isJudged(each)).reduce((sum, { tally: { failures } }) => sum + failures.length,
    0)
  return { title, cells: Object.fromEntries(cells), spared, latestMs: delays?.own.at(-1) ?? null,
    p99Ms: delays?.own[Math.ceil(delays.own.length * 0.99) - 1] ?? null, withoutCpu: delays?.withoutCpu ?? null,
    problems, seconds: (endedAt - startedAt) / 1000 }
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
  const figure = (value: number | null) => value?.toFixed(1)
  return [
    toTable(['', 'apps', 'requests', 'failed', 'hung', 'failed of those not judged', 'latest turn, ms', 'p99, ms',
      'without a CPU', 'seconds'], rows.map(({ title, cells, spared, latestMs, p99Ms, withoutCpu, seconds }) => {
        const sum = (key: 'requests' | 'failed' | 'hung') =>
          Object.values(cells).reduce((total, cell) => total + cell[key], 0)
        return [title, Object.keys(cells).length, sum('requests'), sum('failed'), sum('hung'), spared, figure(latestMs),
          figure(p99Ms), withoutCpu === null ? null : `${Math.round(withoutCpu * 100)} %`, seconds.toFixed(1)]
      })),
    ...rows.filter((row) => !isRowClean(row)).map((row) => `\n**${row.title}**: ${findingsOf(row).join('; ')}`)
  ].join('\n')
}
