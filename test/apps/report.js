/**
 * What became of one program; what it did not come to is left out.
 * @typedef {object} Row
 * @property {string} name
 * @property {string} [version]
 * @property {number} [readyMs] from the start of the command until both workers are ready
 * @property {number} [requests]
 * @property {number} [failedInRollouts]
 * @property {number} [lostWithWorker] requests that the killed worker had in its hands
 * @property {number} [failedWithMaster]
 * @property {number} [failedOnKept] in all, of those that are no fault: requests on connections that the program closed as it ended
 * @property {number} [stopMs]
 * @property {string[]} faults in words
 */

/** @type {[title: string, cell: (row: Row) => string | number | undefined][]} */
const COLUMNS = [
  ['program', ({ name }) => name],
  ['version', ({ version }) => version],
  ['ready ms', ({ readyMs }) => readyMs],
  ['requests', ({ requests }) => requests],
  ['failed in rollouts', ({ failedInRollouts }) => failedInRollouts],
  ['lost with the worker', ({ lostWithWorker }) => lostWithWorker],
  ['failed with the master', ({ failedWithMaster }) => failedWithMaster],
  ['failed on kept connections', ({ failedOnKept }) => failedOnKept],
  ['stop ms', ({ stopMs }) => stopMs],
  ['verdict', verdict]
]

/** @param {Row} row */
export function isOk ({ faults }) {
  return faults.length === 0
}

/** One line for the terminal. @param {Row} row */
export function summarize (row) {
  return [`ready in ${row.readyMs ?? '–'} ms`, `${row.requests ?? 0} requests`, verdict(row)].join(', ')
}

/** @param {Row[]} rows */
export function toMarkdown (rows) {
  const columns = COLUMNS.filter(([, cell]) => rows.some((row) => cell(row) !== undefined))
  return toTable(columns.map(([title]) => title), rows.map((row) => columns.map(([, cell]) => cell(row))))
}

/** @param {string[]} titles @param {(string | number | null | undefined)[][]} rows */
export function toTable (titles, rows) {
  const lines = [titles, titles.map(() => '---'), ...rows.map((row) => row.map((cell) => escape(cell ?? '–')))]
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
}

/** @param {Row} row */
function verdict (row) {
  return isOk(row) ? 'ok' : row.faults.join('; ')
}

/** @param {string | number} text */
function escape (text) {
  return String(text).replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')
}
