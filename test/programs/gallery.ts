// Programs that are not Node's, unmodified, each on a deck of its own: `npm run programs`, or `npm run programs --
// uvicorn gin` Under load each is deployed and restarted, and loses a worker and its master. The table goes to stdout,
// progress to stderr.
import { errorText } from '../../server/errors.ts'
import { install } from './installation.ts'
import { PROGRAMS, type Program } from './programs.ts'
import { isOk, summarize, toMarkdown, type Row } from '../apps/report.ts'
import { tryOut } from '../apps/trial.ts'

const startedAt = performance.now()
const rows: Row[] = []
for (const program of choose(process.argv.slice(2))) {
  process.stderr.write(`${program.name} … `)
  const row = await run(program)
  rows.push(row)
  process.stderr.write(`${summarize(row)}\n`)
}
console.log(toMarkdown(rows))
console.log(
  `\n${rows.filter(isOk).length} of ${rows.length} ok, in ${
    Math.round((performance.now() - startedAt) / 1000)
  } s, node ${process.version}`
)
process.exitCode = rows.every(isOk) ? 0 : 1

/** `words`: parts of names, or what they need. Returns all, where there are none. */
function choose (words: string[]): Program[] {
  const fits = (word: string) => PROGRAMS.filter(({ name, needs }) => name === word || needs === word)
  const unknown = words.filter((word) => fits(word).length === 0)
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(', ')}; there are ${PROGRAMS.map(({ name }) => name).join(', ')}`)
    process.exit(2)
  }
  return words.length === 0 ? PROGRAMS : [...new Set(words.flatMap(fits))]
}

async function run (program: Program): Promise<Row> {
  try {
    const { folder, env, version } = await install(program)
    return { ...await tryOut(asApp(program, env), folder), name: program.name, version }
  } catch (error) {
    return { name: program.name, faults: [errorText(error)] }
  }
}

function asApp (
  { name, command, flags, env: own, expects, asks, listens = expects === undefined ? () => [] : undefined }: Program,
  env: Record<string, string>
): import('../apps/programs.ts').Program {
  return { name, packages: {}, start: flags ?? [], args: command, env: (place) => ({ ...env, ...own?.(place) }),
    asks: expects === undefined ? undefined : { expects, ...asks }, ...(listens && { listens }), keptMayFail: true }
}
