import { errorText } from '../../server/errors.ts'

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

/**
 * Tries out each program that the command line names, or all of them. The table goes to stdout, progress to stderr.
 * @param isCalled whether a word of the command line means the program
 */
export async function tryEach<P extends { name: string }> (programs: readonly P[],
  isCalled: (program: P, word: string) => boolean, tryOne: (program: P) => Promise<Omit<Row, 'name'>>)
{
  const words = process.argv.slice(2)
  const unknown = words.filter((word) => !programs.some((program) => isCalled(program, word)))
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(', ')}; there are ${programs.map(({ name }) => name).join(', ')}`)
    process.exit(2)
  }
  const startedAt = performance.now()
  const rows: Row[] = []
  for (const program of programs.filter((each) => words.length === 0 || words.some((word) => isCalled(each, word)))) {
    const { name } = program
    process.stderr.write(`${name} … `)
    const begunAt = performance.now()
    const row = { ...await tryOne(program).catch((error) => ({ faults: [errorText(error)] })), name }
    rows.push(row)
    process.stderr.write(`${summarize(row)} (${secondsSince(begunAt)} s)\n`)
  }
  console.log(toMarkdown(rows))
  console.log(
    `\n${rows.filter(isOk).length} of ${rows.length} ok, in ${secondsSince(startedAt)} s, node ${process.version}`
  )
  process.exitCode = rows.every(isOk) ? 0 : 1
}

function secondsSince (time: number) {
  return ((performance.now() - time) / 1000).toFixed(1)
}

function isOk ({ faults }: Row) {
  return faults.length === 0
}

/** One line for the terminal. */
function summarize (row: Row) {
  return [`ready in ${row.readyMs ?? '–'} ms`, `${row.requests ?? 0} requests`, verdict(row)].join(', ')
}

function toMarkdown (rows: Row[]) {
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
