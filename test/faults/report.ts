import { toTable } from '../apps/report.ts'
import { isClean, type Cell } from './verdict.ts'
import type { Row } from './trial.ts'
import type { Fault } from './faults.ts'
import type { Load } from './loads.ts'

export function isRowClean ({ cells, problems }: Row) {
  return problems.length === 0 && Object.values(cells).every(isClean)
}

/** A line for the terminal, and what is not clean below it. */
export function summarize (row: Row) {
  const { cells, problems, seconds } = row
  const sum = (key: 'requests' | 'failed' | 'excusable' | 'hung' | 'twice') =>
    Object.values(cells).reduce((total, cell) => total + cell[key], 0)
  const unclean = Object.entries(cells).filter(([, cell]) => !isClean(cell))
  return [
    `${isRowClean(row) ? 'clean' : 'NOT CLEAN'}, ${sum('requests')} requests, ${sum('failed')} failed (${
      sum('excusable')
    } excusable), ${sum('hung')} hung, ${sum('twice')} twice (${seconds.toFixed(1)} s)`,
    ...problems.map((problem) => `    ${problem}`),
    ...unclean.flatMap(([load, { evidence }]) => evidence.map((each) => `    ${load}: ${each}`))
  ].join('\n')
}

/** `loads`: the columns */
export function toMarkdown (rows: Row[], faults: readonly Fault[], loads: readonly Load[]) {
  const title = ({ fault }: Row) => faults.find(({ name }) => name === fault)?.title ?? fault
  return ['requests / failed / of these excusable / hung / begun twice', '',
    toTable(['', ...loads.map((load) => load.title)],
      rows.map((row) => [title(row), ...loads.map(({ name }) => cellText(row.cells[name]))])),
    ...rows.filter((row) => !isRowClean(row)).flatMap((row) => ['', `**${title(row)}**: ${summarize(row)}`])].join('\n')
}

function cellText (cell: Cell) {
  const { requests, failed, excusable, hung, twice } = cell
  const text = `${requests} / ${failed} / ${excusable} / ${hung} / ${twice}`
  return isClean(cell) ? text : `**${text}**`
}
