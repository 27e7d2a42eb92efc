// Programs that are not Node's, unmodified, each on a deck of its own: `npm run programs`, or `npm run programs -- uvicorn gin`
// Under load each is deployed and restarted, and loses a worker and its master. The table goes to stdout, progress to stderr.
import { install } from './installation.js'
import { PROGRAMS } from './programs.js'
import { isOk, summarize, toMarkdown } from '../apps/report.js'
import { tryOut } from '../apps/trial.js'

/** @typedef {import('../apps/report.js').Row} Row */

const startedAt = performance.now()
/** @type {Row[]} */
const rows = []
for (const program of choose(process.argv.slice(2))) {
  process.stderr.write(`${program.name} … `)
  const row = await run(program)
  rows.push(row)
  process.stderr.write(`${summarize(row)}\n`)
}
console.log(toMarkdown(rows))
console.log(`\n${rows.filter(isOk).length} of ${rows.length} ok, in ${Math.round((performance.now() - startedAt) / 1000)} s, node ${process.version}`)
process.exitCode = rows.every(isOk) ? 0 : 1

/** @param {string[]} words parts of names, or what they need @returns {import('./programs.js').Program[]} all, where there are none */
function choose (words) {
  const fits = (/** @type {string} */ word) => PROGRAMS.filter(({ name, needs }) => name === word || needs === word)
  const unknown = words.filter((word) => fits(word).length === 0)
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(', ')}; there are ${PROGRAMS.map(({ name }) => name).join(', ')}`)
    process.exit(2)
  }
  return words.length === 0 ? PROGRAMS : [...new Set(words.flatMap(fits))]
}

/** @param {import('./programs.js').Program} program @returns {Promise<Row>} */
async function run (program) {
  try {
    const { folder, env, version } = await install(program)
    return { ...await tryOut(asApp(program, env), folder), name: program.name, version }
  } catch (/** @type {any} */ error) {
    return { name: program.name, faults: [error.message] }
  }
}

/** @param {import('./programs.js').Program} program @param {Record<string, string>} env @returns {import('../apps/programs.js').Program} */
function asApp ({ name, command, flags, env: own, expects, asks, listens = expects === undefined ? () => [] : undefined }, env) {
  return {
    name,
    packages: {},
    start: flags ?? [],
    args: command,
    env: (place) => ({ ...env, ...own?.(place) }),
    asks: expects === undefined ? undefined : { expects, ...asks },
    ...(listens && { listens }),
    keptMayFail: true
  }
}
