/** What became of one program; what it did not come to is left out. */
export type Row = {
  name: string,
  version?: string,
  /** from the start of the command until both workers are ready */
  readyMs?: number,
  requests?: number,
  failedInRollouts?: number,
  /** requests that the killed worker had in its hands */
  lostWithWorker?: number,
  failedWithMaster?: number,
  /** in all, of those that are no fault: requests on connections that the program closed as it ended */
  failedOnKept?: number,
  stopMs?: number,
  /** in words */
  faults: string[]
}

const COLUMNS: [title: string, cell: (row: Row) => string | number | undefined][] = [['program', ({ name }) => name], [
  'version',
  ({ version }) => version
], ['ready ms', ({ readyMs }) => readyMs], ['requests', ({ requests }) => requests], ['failed in rollouts',
  ({ failedInRollouts }) => failedInRollouts], ['lost with the worker', ({ lostWithWorker }) => lostWithWorker], [
  'failed with the master',
  ({ failedWithMaster }) => failedWithMaster
], ['failed on kept connections', ({ failedOnKept }) => failedOnKept], ['stop ms', ({ stopMs }) => stopMs], ['verdict',
  verdict]]

export function isOk ({ faults }: Row) {
  return faults.length === 0
}

/** One line for the terminal. */
export function summarize (row: Row) {
  return [`ready in ${row.readyMs ?? '–'} ms`, `${row.requests ?? 0} requests`, verdict(row)].join(', ')
}

export function toMarkdown (rows: Row[]) {
  const columns = COLUMNS.filter(([, cell]) => rows.some((row) => cell(row) !== undefined))
  return toTable(columns.map(([title]) => title), rows.map((row) => columns.map(([, cell]) => cell(row))))
}

export function toTable (titles: string[], rows: (string | number | null | undefined)[][]) {
  const lines = [titles, titles.map(() => '---'), ...rows.map((row) => row.map((cell) => escape(cell ?? '–')))]
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
}

function verdict (row: Row) {
  return isOk(row) ? 'ok' : row.faults.join('; ')
}

function escape (text: string | number) {
  return String(text).replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')
}
