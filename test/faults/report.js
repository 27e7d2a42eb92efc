import { isClean } from './verdict.js'

/** @typedef {import('./trial.js').Row} Row */

/** @param {Row} row */
export function isRowClean ({ cells, problems }) {
  return problems.length === 0 && Object.values(cells).every(isClean)
}

/** A line for the terminal, and what is not clean below it. @param {Row} row */
export function summarize (row) {
  const { cells, problems, seconds } = row
  const sum = (/** @type {'requests' | 'failed' | 'excusable' | 'hung' | 'twice'} */ key) => Object.values(cells).reduce((total, cell) => total + cell[key], 0)
  const unclean = Object.entries(cells).filter(([, cell]) => !isClean(cell))
  return [
    `${isRowClean(row) ? 'clean' : 'NOT CLEAN'}, ${sum('requests')} requests, ${sum('failed')} failed (${sum('excusable')} excusable), ${sum('hung')} hung, ${sum('twice')} twice (${seconds.toFixed(1)} s)`,
    ...problems.map((problem) => `    ${problem}`),
    ...unclean.flatMap(([load, { evidence }]) => evidence.map((each) => `    ${load}: ${each}`))
  ].join('\n')
}

/**
 * @param {Row[]} rows
 * @param {readonly import('./faults.js').Fault[]} faults
 * @param {readonly import('./loads.js').Load[]} loads the columns
 */
export function toMarkdown (rows, faults, loads) {
  const title = (/** @type {Row} */ { fault }) => faults.find(({ name }) => name === fault)?.title ?? fault
  return [
    'requests / failed / of these excusable / hung / begun twice',
    '',
    line(['', ...loads.map((load) => load.title)]),
    line(['', ...loads].map(() => '---')),
    ...rows.map((row) => line([title(row), ...loads.map(({ name }) => cellText(row.cells[name]))])),
    ...rows.filter((row) => !isRowClean(row)).flatMap((row) => ['', `**${title(row)}**: ${summarize(row)}`])
  ].join('\n')
}

/** @param {import('./verdict.js').Cell} cell */
function cellText (cell) {
  const { requests, failed, excusable, hung, twice } = cell
  const text = `${requests} / ${failed} / ${excusable} / ${hung} / ${twice}`
  return isClean(cell) ? text : `**${text}**`
}

/** @param {string[]} cells */
function line (cells) {
  return `| ${cells.join(' | ')} |`
}
