import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { run } from 'node:test'
import { spec as SpecReporter } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { errorText } from '../server/errors.ts'
import { ownCode } from '../server/own-code.js'
import { endProcessesOf } from './support/leftovers.ts'
import { runFolder } from './support/run-folder.ts'
import { shuffled } from './support/random.ts'

// Runs test files in a few processes, which take one file after the other: a process for each file would load the same
// modules again and again, and open a browser of its own. Those of what runs inside apps have a process each: it
// changes Node's own modules. Without arguments it runs all that `npm test` promises, and with TEST_ALL what is rare as
// well. `--seed` gives the files another order, `--load` runs that many busy processes beside them, except beside what
// measures time; `--record` names a file for what failed.

const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = path.dirname(HERE)
const LANE = path.join(HERE, 'support', 'lane.ts')
/** Tests wait as often as they work. */
const LANES = 5
const INSIDE_APPS = path.join(HERE, 'unit', 'workers')
const isAlone = (file: string) => file.startsWith(INSIDE_APPS + path.sep)
/** Of what measures time: those that count CPU time, or wait for most of theirs. They do not disturb each other. */
const PATIENT = ['crash-grace', 'crashes', 'deaths', 'deploys', 'keeper', 'request-path', 'service-manager',
  'slow-start', 'watchdog'].map((name) => `${name}.test.ts`)
const isPatient = (file: string) => PATIENT.includes(path.basename(file))
/** What takes long comes first in the lanes, so that at the end none of them is left alone. */
const STAGES = [{ files: [...spread(filesOf('browser'), filesOf('cluster')), ...filesOf('admin'), ...filesOf('unit')],
  lanes: LANES, takesLoad: true }, { files: filesOf('timed').filter(isPatient), lanes: 3 }, {
  files: filesOf('timed').filter((file) => !isPatient(file)),
  lanes: 1
}]
const LOADED_FIRST = new URL('support/process-of-tests.ts', import.meta.url).href
const SLOW_MS = 30_000
/**
 * A process that takes this long hangs where no limit of its tests can end it, as in a loop. A lane runs for a part of
 * it.
 */
const PROCESS_TIMEOUT_MS = 3_600_000

// Each process reads the extra certificates of the machine when it starts, which takes longer than the rest of a start;
// and a run starts a thousand. Here nobody but npm meets a stranger: test/cluster/install.test.ts gives it them back.
const { NODE_EXTRA_CA_CERTS } = process.env
if (NODE_EXTRA_CA_CERTS !== undefined) process.env.TEST_EXTRA_CA_CERTS = NODE_EXTRA_CA_CERTS
delete process.env.NODE_EXTRA_CA_CERTS

// Workers and commands run what is built.
if (ownCode() === null) process.exit(1)

if (process.env.TEST_ALL === undefined) process.env.TEST_WITHOUT_RARE = '1'

const { values, positionals } = parseArgs({ allowPositionals: true,
  options: { lanes: { type: 'string' }, seed: { type: 'string' }, load: { type: 'string', default: '0' },
    record: { type: 'string' } } })
const stages = positionals.length > 0
  ? [{ files: positionals.map((file) => path.resolve(file)), lanes: LANES, takesLoad: true }]
  : STAGES
const failures: { file: string, test: string, error: string }[] = []
let claimed = 0

const folder = runFolder()
// The processes of the tests inherit these; and of a test that runs this, nothing.
process.env.TEST_RUN = folder
delete process.env.TEST_PLACE
delete process.env.NODE_TEST_CONTEXT
process.execArgv.push(`--import=${LOADED_FIRST}`)
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => end(128 + os.constants.signals[signal]))

for (const { files, lanes, takesLoad } of stages) {
  if (process.exitCode && values.record === undefined) break
  const load = Array.from({ length: takesLoad ? Number(values.load) : 0 }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  await runFiles(values.seed === undefined ? files : shuffled(files, Number(values.seed)),
    Number(values.lanes ?? lanes))
  for (const each of load) each.kill('SIGKILL')
}
if (values.record !== undefined) writeFileSync(values.record, JSON.stringify(failures))
end(Number(process.exitCode ?? 0))

/** Leaves nothing that runs: a lane that is told to end would leave its decks and its browser. */
function end (code: number) {
  endProcessesOf(folder)
  for (const [, place] of readFileSync('/proc/mounts', 'utf8').matchAll(/^\S+ (\S+)/gm))
    if (place.startsWith(folder)) spawnSync('umount', ['-l', place])
  rmSync(folder, { recursive: true, force: true })
  process.exit(code)
}

/** Browsers beside each other slow each other down, and what they draw meanwhile. */
function spread (few: string[], many: string[]): string[] {
  const share = Math.ceil(many.length / few.length)
  return few.flatMap((file, index) => [file, ...many.slice(index * share, (index + 1) * share)])
}

function filesOf (folder: string): string[] {
  return readdirSync(path.join(HERE, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.test.ts')
  ).sort().map((name) => path.join(HERE, folder, name))
}

async function runFiles (files: string[], lanes: number) {
  const own = files.filter(isAlone)
  const shared = files.filter((file) => !own.includes(file))
  const claims = path.join(folder, `claims-${claimed++}`)
  mkdirSync(claims)
  // The lanes inherit it.
  process.env.TEST_LANE = JSON.stringify({ files: shared, claims })
  const slow: string[] = []
  const tests = run({ files: [...own, ...Array(Math.min(lanes, shared.length)).fill(LANE)], concurrency: lanes,
    timeout: PROCESS_TIMEOUT_MS })
  const missing = new Set(shared.map((file) => path.relative(ROOT, file)))
  /** Of a file whose end has not been told yet. */
  let failed: { test: string, error: string }[] = []
  tests.on('test:fail', ({ name, nesting, details: { error } }) => {
    process.exitCode = 1
    missing.delete(name)
    const { failureType, cause } = error as Error & { failureType?: string }
    if (failureType !== 'subtestsFailed')
      failed.push({ test: name, error: errorText(cause ?? error) })
    if (nesting > 0) return
    failures.push(...failed.map((each) => ({ file: name, ...each })))
    failed = []
  })
  tests.on('test:pass', ({ name, details }) => {
    missing.delete(name)
    if (details.type !== 'suite' && details.duration_ms > SLOW_MS)
      slow.push(`${name} (${Math.round(details.duration_ms / 1000)} s)`)
  })
  const output = tests.compose(new SpecReporter())
  output.pipe(process.stdout)
  await new Promise((resolve) => output.once('end', resolve))
  // Of a lane that has ended before its time.
  for (const each of missing) {
    console.log(`has not been run to its end: ${each}`)
    failures.push({ file: each, test: 'all', error: 'has not been run to its end' })
  }
  if (missing.size > 0) process.exitCode = 1
  for (const each of slow) console.log(`took more than ${SLOW_MS / 1000} s: ${each}`)
}
