// Real programs of the npm registry, unmodified, each on a deck of its own: `npm run apps`, or `npm run apps -- express
// koa` Under load each is deployed and restarted, and loses a worker and its master. The table goes to stdout, progress
// to stderr.
import { errorText } from '../../server/errors.ts'
import { install } from './installation.ts'
import { PROGRAMS, type Program } from './programs.ts'
import { isOk, summarize, toMarkdown, type Row } from './report.ts'
import { tryOut } from './trial.ts'

const startedAt = performance.now()
const rows: Row[] = []
for (const program of choose(process.argv.slice(2))) {
  process.stderr.write(`${program.name} … `)
  const begunAt = performance.now()
  const row = await run(program)
  rows.push(row)
  process.stderr.write(`${summarize(row)} (${((performance.now() - begunAt) / 1000).toFixed(1)} s)\n`)
}
console.log(toMarkdown(rows))
console.log(
  `\n${rows.filter(isOk).length} of ${rows.length} ok, in ${
    Math.round((performance.now() - startedAt) / 1000)
  } s, node ${process.version}`
)
process.exitCode = rows.every(isOk) ? 0 : 1

/** @returns all, where none is named */
function choose (names: string[]): Program[] {
  const unknown = names.filter((name) => !PROGRAMS.some((program) => program.name === name))
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(', ')}; there are ${PROGRAMS.map(({ name }) => name).join(', ')}`)
    process.exit(2)
  }
  return names.length === 0 ? PROGRAMS : PROGRAMS.filter(({ name }) => names.includes(name))
}

async function run (program: Program): Promise<Row> {
  try {
    const { folder, version } = await install(program)
    return { ...await tryOut(program, folder), name: program.name, version }
  } catch (error) {
    return { name: program.name, faults: [errorText(error)] }
  }
}
