import type { Spread, Verdict } from './summary.ts'

/** by their name */
type Figures = Record<string, number | string | Spread | undefined>
/** `peers`: by name */
export type Result = { title: string, figures: string[], peers: Record<string, Figures>, verdicts?: Verdict[] }
type Results = { date: string, machine: string, versions: string, pace: string, rows: Record<string, Result> }

const CLUSTER = 'node:cluster, round-robin'
const SHARED = 'node:cluster, shared'
const SHORT_PEERS = ['clusterdeck', CLUSTER, 'PM2', 'Watt']
/** What the README shows: the row, one of its figures, how it reads there, and who stands for whom. */
const SHORT: [row: string, figure: string, text: string, instead?: Record<string, string>][] = [['cpu', 'hello',
  'CPU of a worker per keep-alive request, µs'], ['closing', 'CPU µs per request',
  'CPU of all its processes for a request on a connection of its own, µs'], ['rate', 'p99 ms',
  '5,000 requests a second: p99, ms'], ['spread', '10 ms apart',
  '160 long-lived connections over 8 workers, largest share ÷ mean'], ['busy', 'p99 ms',
  'two of 8 workers are busy: p99 of the first answer on a new connection, ms'], ['reload', 'failed',
  'a rolling restart under load: failed requests'], ['reload', 'seconds', 'the same, seconds'], ['reload',
  'p99 ms during', 'the same: p99 of what was answered meanwhile, ms'], ['reload', 'p99 ms of all',
  'the same, where what failed counts as the slowest answer, ms'], ['kill', 'one: ms to full strength',
  'one of two workers is SIGKILLed: ms to full strength'], ['kill', 'both: failed',
  'both are SIGKILLed: failed connections'], ['start', 'ms', 'first start: ms from the command to the first answer'], [
  'start',
  'ms',
  'the same where host or daemon runs already',
  { clusterdeck: 'clusterdeck, its host runs', PM2: 'PM2, its daemon runs' }
], ['rest', 'PSS MB', 'memory of what manages two workers, PSS, MB'], ['rest', 'with workers: CPU ms a minute',
  'CPU of all at rest, two workers, ms a minute'], ['install', 'seconds', 'installed without a compiler, seconds'], [
  'install',
  'MB',
  'the same, MB'
]]

/** @returns Markdown */
export function report ({ date, machine, versions, pace, rows }: Results, short = shortTable(rows)): string {
  const places = placesOf(rows)
  return ['# Results of the comparison', '', `${date}, ${machine}. ${versions}. ${pace}`, '',
    'All run the same app (`test/fixtures/compared-app.cjs`) with `NODE_ENV=production`, two workers each unless a title says otherwise, one after the other in every round. A figure is the median of its rounds, with the half in the middle in brackets; `failed` and `hung` are sums. Less is better in each. Where there is a rate, a time counts from when the request was due, and not from when it could be sent. The client has a core of its own there. `–`: it has no such thing.',
    '', '## In short', '', short,
    ...places.length > 0
      ? ['## Who is ahead', '',
        'The first and the second half of the rounds are two runs, with all processes started anew. Ahead: the median is smaller by more than 5 % in both; behind: larger by as much. Even: neither in one of them. Unsettled: ahead in one run, behind in the other; the README leaves that out. In brackets: the own figure ÷ the other, in either run.',
        '', ...places, '']
      : [], ...Object.entries(rows).flatMap(([name, row]) => [`## ${name}: ${row.title}`, '', tableOf(row), ''])].join(
      '\n'
    )
}

/** @returns with the marks between which the README has the same */
export function shortTable (rows: Record<string, Result>): string {
  const shown = SHORT.filter(([row, figure, , instead]) => rows[row] && isSettled(rows[row], figure, instead))
  const lines = shown.map((
    [row, figure, text, instead]
  ) => [text, ...SHORT_PEERS.map((peer) => shownValue(valueOf(rows[row], peer, figure, instead)))])
  return ['<!-- compared -->',
    'Medians, with the half of the rounds in the middle in brackets. Less is better in every row.', '',
    ...table(['', ...SHORT_PEERS], lines), '<!-- /compared -->', ''].join('\n')
}

function valueOf ({ peers }: Result, peer: string, figure: string, instead?: Record<string, string>) {
  // Where connections are not the point, one of both is measured.
  return (peers[instead?.[peer] ?? peer] ?? (peer === CLUSTER ? peers[SHARED] : undefined))?.[figure]
}

/** Whether both runs say the same of those that the README shows. */
function isSettled ({ verdicts = [] }: Result, figure: string, instead: Record<string, string> = {}) {
  const shown = SHORT_PEERS.map((peer) => instead[peer] ?? peer)
  return !verdicts.some((verdict) =>
    verdict.figure === figure && verdict.place === 'unsettled' && shown.includes(verdict.own) &&
    shown.includes(verdict.peer)
  )
}

/** @returns a table of who is ahead of whom, figure by figure */
function placesOf (rows: Record<string, Result>): string[] {
  const lines = Object.entries(rows).flatMap(([name, { verdicts = [] }]) => {
    const keys = new Set(verdicts.map(({ own, figure }) => `${own}\0${figure}`))
    return [...keys].map((key) => {
      const [own, figure] = key.split('\0')
      const named = (place: string) =>
        verdicts.filter((each) => each.own === own && each.figure === figure && each.place === place).map(nameWithRatio)
          .join(', ') || '–'
      return [`${name}: ${figure}${own === 'clusterdeck' ? '' : ` (${own})`}`,
        ...['ahead', 'even', 'behind', 'unsettled'].map(named)]
    })
  })
  return lines.length > 0 ? table(['clusterdeck is', 'ahead of', 'even with', 'behind', 'unsettled'], lines) : []
}

function nameWithRatio ({ peer, ratios, place }: Verdict) {
  if (place === 'even' || ratios.some((ratio) => ratio === 0 || !Number.isFinite(ratio))) return peer
  return `${peer} (× ${ratios.map((ratio) => ratio.toFixed(2)).join(' and ')})`
}

export function tableOf ({ figures, peers }: Result): string {
  return table(['', ...figures],
    Object.entries(peers).map((
      [peer, values]
    ) => [peer, ...figures.map((figure) => shownValue(values[figure] ?? values.problem))])).join('\n')
}

function shownValue (value: number | string | Spread | undefined) {
  if (value === undefined) return '–'
  if (typeof value === 'string') return value
  if (typeof value === 'number') return shownNumber(value)
  const [median, low, high] = [value.median, value.low, value.high].map(shownNumber)
  return low === high ? median : `${median} (${low}–${high})`
}

function shownNumber (value: number) {
  if (Number.isInteger(value)) return value.toLocaleString('en')
  return value >= 100 ? Math.round(value).toLocaleString('en') : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function table (head: string[], lines: string[][]) {
  const row = (cells: string[]) => `| ${cells.join(' | ')} |`.replace('|  |', '| |')
  return [row(head), row(head.map((_, index) => index === 0 ? '---' : '---:')), ...lines.map(row)]
}
