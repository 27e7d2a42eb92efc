import { readdirSync } from 'node:fs'
import path from 'node:path'
import { run } from 'node:test'
import { spec as SpecReporter } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { tempFolder } from './support/folder.js'

// Runs test files in a few processes, which take one file after the other: a process for each file would load the same modules
// again and again, and open a browser of its own. Those of what runs inside apps have a process each: it changes Node's own modules.
// Without arguments it runs all that `npm test` promises, and with TEST_ALL what is rare as well.

const HERE = fileURLToPath(new URL('.', import.meta.url))
const LANE = path.join(HERE, 'support', 'lane.js')
/** Tests wait as often as they work. */
const LANES = 5
const INSIDE_APPS = path.join(HERE, 'unit', 'workers')
const isAlone = (/** @type {string} */ file) => file.startsWith(INSIDE_APPS + path.sep)
/** Of what measures time: those that count CPU time, or wait for most of theirs. They do not disturb each other. */
const PATIENT = ['crash-grace', 'crashes', 'deaths', 'deploys', 'keeper', 'request-path', 'service-manager', 'slow-start', 'watchdog'].map((name) => `${name}.test.js`)
const isPatient = (/** @type {string} */ file) => PATIENT.includes(path.basename(file))
/** What takes long comes first in the lanes, so that at the end none of them is left alone. */
const STAGES = [
  { files: [...spread(filesOf('browser'), filesOf('cluster')), ...filesOf('admin'), ...filesOf('unit')], lanes: LANES },
  { files: filesOf('timed').filter(isPatient), lanes: 3 },
  { files: filesOf('timed').filter((file) => !isPatient(file)), lanes: 1 }
]
const SLOW_MS = 30_000
/** A process that takes this long hangs where no limit of its tests can end it, as in a loop. A lane runs for a part of it. */
const PROCESS_TIMEOUT_MS = 3_600_000

// Each process reads the extra certificates of the machine when it starts, which takes longer than the rest of a start; and a
// run starts a thousand. Here nobody but npm meets a stranger: test/cluster/install.test.js gives it them back.
const { NODE_EXTRA_CA_CERTS } = process.env
if (NODE_EXTRA_CA_CERTS !== undefined) process.env.TEST_EXTRA_CA_CERTS = NODE_EXTRA_CA_CERTS
delete process.env.NODE_EXTRA_CA_CERTS

if (process.env.TEST_ALL === undefined) process.env.TEST_WITHOUT_RARE = '1'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { lanes: { type: 'string' } } })
const stages = positionals.length > 0
  ? [{ files: positionals.map((file) => path.resolve(file)), lanes: LANES }]
  : STAGES
for (const { files, lanes } of stages) {
  if (process.exitCode) break
  await runFiles(files, Number(values.lanes ?? lanes))
}

/** Browsers beside each other slow each other down, and what they draw meanwhile. @param {string[]} few @param {string[]} many @returns {string[]} */
function spread (few, many) {
  const share = Math.ceil(many.length / few.length)
  return few.flatMap((file, index) => [file, ...many.slice(index * share, (index + 1) * share)])
}

/** @param {string} folder @returns {string[]} */
function filesOf (folder) {
  return readdirSync(path.join(HERE, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js')).sort().map((name) => path.join(HERE, folder, name))
}

/** @param {string[]} files @param {number} lanes */
async function runFiles (files, lanes) {
  const own = files.filter(isAlone)
  const shared = files.filter((file) => !own.includes(file))
  // The lanes inherit it.
  process.env.TEST_LANE = JSON.stringify({ files: shared, claims: tempFolder() })
  /** @type {string[]} */
  const slow = []
  const tests = run({ files: [...own, ...Array(Math.min(lanes, shared.length)).fill(LANE)], concurrency: lanes, timeout: PROCESS_TIMEOUT_MS })
  const missing = new Set(shared.map((file) => path.relative(process.cwd(), file)))
  tests.on('test:fail', ({ name }) => {
    process.exitCode = 1
    missing.delete(name)
  })
  tests.on('test:pass', ({ name, details }) => {
    missing.delete(name)
    if (details.type !== 'suite' && details.duration_ms > SLOW_MS) slow.push(`${name} (${Math.round(details.duration_ms / 1000)} s)`)
  })
  const output = tests.compose(new SpecReporter())
  output.pipe(process.stdout)
  await new Promise((resolve) => output.once('end', resolve))
  // Of a lane that has ended before its time.
  for (const each of missing) console.log(`has not been run to its end: ${each}`)
  if (missing.size > 0) process.exitCode = 1
  for (const each of slow) console.log(`took more than ${SLOW_MS / 1000} s: ${each}`)
}
