import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { formatTable } from '../server/cli/output.ts'

// Runs all tests again and again, each time in another order, and prints which of them failed, how often and in which
// order. Called again after it was stopped, it goes on with the run in which that was, in the same order.

type Failure = { file: string, test: string, error: string }
type State = { wanted: string, seed: number, done: { seed: number, seconds: number, failures: Failure[] }[] }

const RUN = fileURLToPath(new URL('run.ts', import.meta.url))
const MAX_ERROR_CHARS = 120

const STATE = fileURLToPath(new URL('.flaky.json', import.meta.url))
const { values: { load, state: file }, positionals: [times = '', ...files] } = parseArgs({ allowPositionals: true,
  options: { load: { type: 'string', default: '0' }, state: { type: 'string', default: STATE } } })
if (!/^[1-9]\d{0,3}$/.test(times))
  throw new Error(
    `expected how often to run the tests, as in npm run flaky -- 6 --load 4, received ${JSON.stringify(times)}`
  )
if (!/^\d{1,3}$/.test(load))
  throw new Error(`--load: expected how many busy processes to run beside the tests, received ${JSON.stringify(load)}`)

const state = begun({ wanted: [times, load, ...files].join(' '), seed: newSeed(), done: [] })
while (state.done.length < Number(times)) {
  write(state)
  console.log(`run ${state.done.length + 1} of ${times}, seed ${state.seed}`)
  const startedAt = performance.now()
  const failures = await runOnce(state.seed)
  state.done.push({ seed: state.seed, seconds: Math.round((performance.now() - startedAt) / 1000), failures })
  state.seed = newSeed()
}
rmSync(file, { force: true })
tell(state.done)

/** @returns the one that was stopped, where the same was wanted */
function begun (fresh: State): State {
  try {
    const before = JSON.parse(readFileSync(file, 'utf8'))
    return before.wanted === fresh.wanted ? before : fresh
  } catch {
    // ENOENT: none was stopped. Or while it was written.
    return fresh
  }
}

function write (now: State) {
  writeFileSync(file, JSON.stringify(now))
}

async function runOnce (seed: number): Promise<Failure[]> {
  const record = `${file}.record`
  const child = spawn(process.execPath, [RUN, '--seed', String(seed), '--load', load, '--record', record, ...files], {
    stdio: 'inherit'
  })
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const
  const passOn = (signal: NodeJS.Signals) => {
    child.kill(signal)
  }
  for (const signal of signals) process.on(signal, passOn)
  try {
    const [code, signal] = await once(child, 'exit')
    if (signal !== null || code > 1) process.exit(code ?? 1)
    return JSON.parse(readFileSync(record, 'utf8'))
  } finally {
    for (const each of signals) process.off(each, passOn)
    rmSync(record, { force: true })
  }
}

function newSeed () {
  return randomInt(2 ** 31)
}

function tell (done: State['done']) {
  const found: Map<string, { failure: Failure, seeds: Set<number> }> = new Map()
  for (const { seed, failures } of done) {
    for (const failure of failures) {
      const key = `${failure.file}: ${failure.test}`
      if (!found.has(key)) found.set(key, { failure, seeds: new Set() })
      found.get(key)?.seeds.add(seed)
    }
  }
  for (const { seed, seconds, failures } of done) console.log(`seed ${seed}: ${seconds} s, ${failures.length} failed`)
  const rows = [...found].sort(([, one], [, other]) => other.seeds.size - one.seeds.size).map((
    [key, { failure, seeds }]
  ) => [`${seeds.size} of ${done.length}`, key, [...seeds].join(' '),
    failure.error.split('\n')[0].slice(0, MAX_ERROR_CHARS)]
  )
  if (rows.length > 0) console.log(formatTable(['FAILED', 'TEST', 'SEEDS', 'ERROR'], rows))
  process.exitCode = rows.length > 0 ? 1 : 0
}
