/**
 * @typedef {{ title: string, figures: string[], peers: Record<string, import('./rows.js').Cell> }} Result  `peers`: by name
 * @typedef {object} Results
 * @property {string} date
 * @property {string} machine
 * @property {string} versions
 * @property {string} pace
 * @property {Record<string, Result>} rows
 */

/** What the README shows: the row, one of its figures, and how it reads there. @type {[row: string, figure: string, text: string][]} */
const SHORT = [
  ['hello', '32', 'hello over 32 keep-alive connections, requests/s'],
  ['closing', 'requests/s', 'a connection per request, requests/s'],
  ['spread', '10 ms apart', '160 long-lived connections over 8 workers, largest share ÷ mean'],
  ['busy', 'p99 ms', 'the same with two workers busy: p99 of the first answer, ms'],
  ['reload', 'failed', 'a rolling restart under load: failed requests'],
  ['reload', 'seconds', 'the same, seconds'],
  ['kill-one', 'ms to full strength', 'one of two workers is SIGKILLed: ms to full strength'],
  ['kill-all', 'failed', 'both are SIGKILLed: failed connections'],
  ['start', 'ms', 'start of the command to the first answer, ms']
]
const SHORT_PEERS = ['clusterdeck', 'node:cluster, round-robin', 'PM2', 'Watt']

/** @param {Results} results @returns {string} Markdown */
export function report ({ date, machine, versions, pace, rows }, short = shortTable(rows)) {
  return [
    '# Results of the comparison',
    '',
    `${date}, ${machine}. ${versions}. ${pace}`,
    '',
    'All run the same app (`test/fixtures/compared-app.cjs`), two workers each unless a title says otherwise, one after the other in every round. Each figure is the median of its rounds, `failed` and `hung` are sums. The client runs on the same cores, so compare within a column, and ratios rather than figures. `–`: it has no such thing.',
    '',
    '## In short',
    '',
    short,
    ...Object.values(rows).flatMap((row) => [`## ${row.title}`, '', tableOf(row), ''])
  ].join('\n')
}

/** @param {Record<string, Result>} rows @returns {string} with the marks between which the README has the same */
export function shortTable (rows) {
  const lines = SHORT.filter(([row]) => rows[row]).map(([row, figure, text]) => [text, ...SHORT_PEERS.map((peer) => shown(rows[row].peers[peer]?.[figure]))])
  return ['<!-- compared -->', ...table(['', ...SHORT_PEERS], lines), '<!-- /compared -->', ''].join('\n')
}

/** @param {Result} row @returns {string} */
export function tableOf ({ figures, peers }) {
  return table(['', ...figures], Object.entries(peers).map(([peer, cell]) => [peer, ...figures.map((figure) => shown(cell[figure] ?? cell.problem))])).join('\n')
}

/** @param {number | string | undefined} value */
function shown (value) {
  if (value === undefined) return '–'
  if (typeof value === 'string') return value
  if (Number.isInteger(value)) return value.toLocaleString('en')
  return value >= 100 ? Math.round(value).toLocaleString('en') : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** @param {string[]} head @param {string[][]} lines */
function table (head, lines) {
  const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`.replace('|  |', '| |')
  return [row(head), row(head.map((_, index) => index === 0 ? '---' : '---:')), ...lines.map(row)]
}
