// What it costs a program of another language to run under clusterdeck: the same program on the same core alone, by turns.
// `node test/bench/programs.js [rounds] [programs of the gallery, one process each]`
import { spawn } from 'node:child_process'
import { createOwner } from '../support/owner.js'
import { ratiosTo, spreadOf } from './figures.js'
import { pin, saturate, untilAnswer } from './compare/client.js'
import { install } from '../programs/installation.js'
import { PROGRAMS } from '../programs/programs.js'
import { startDeck } from '../support/deck.js'
import { tempFolder } from '../support/folder.js'
import { freePort } from '../support/ports.js'
import { cpuMs } from '../support/process-figures.js'

/** @typedef {{ port: number, pid: number }} Running */
/** @typedef {{ perSecond: number, microseconds: number }} Figures `microseconds`: of the program's processors, for a request */
/** @typedef {'alone' | 'again' | 'managed'} Way `again`: alone as well, which tells what a difference means */

const WAYS = /** @type {Way[]} */ (['alone', 'managed', 'again'])
const ROUNDS = Number(process.argv[2] ?? 9)
const NAMES = process.argv.length > 3 ? process.argv.slice(3) : ['bun-serve', 'go-http', 'asio', 'netty']
const SECONDS = 3
// By then the JVM has compiled Netty.
const WARM_REQUESTS = 300_000
const CONNECTIONS = 32
const owner = createOwner()

console.log(`One copy on a core of its own, ${CONNECTIONS} connections that stay from the other core, ${ROUNDS} rounds of new processes, ${SECONDS} s each by turns; medians (smallest to largest)\n`)
console.log('| program | requests/s alone | under clusterdeck ÷ alone | alone again ÷ alone | µs of CPU a request alone | under clusterdeck ÷ alone | alone again ÷ alone |\n| --- | --- | --- | --- | --- | --- | --- |')
for (const name of NAMES) console.log(toLine(name, await compare(name)))

/** @param {string} name @returns {Promise<Record<Way, Figures>[]>} */
async function compare (name) {
  const program = PROGRAMS.find((each) => each.name === name)
  if (!program) throw new Error(`there is no program ${name}`)
  const { folder, env } = await install(program)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await begin(startAlone)
    const running = { alone, managed: await begin(startManaged), again: await begin(startAlone) }
    rounds.push(await measureByTurns(running, round))
    await owner.end()
  }
  return rounds

  async function begin (/** @type {typeof startAlone} */ start) {
    const place = { folder, port: await freePort(), secondPort: 0, state: tempFolder(), socket: '', upstream: '' }
    return await start(/** @type {import('../programs/programs.js').Program} */ (program).command(place), folder, { ...env, PORT: String(place.port) })
  }
}

/** @param {string[]} command @param {string} cwd @param {Record<string, string>} env @returns {Promise<Running>} */
async function startAlone ([file, ...args], cwd, env) {
  // A session of its own, as under clusterdeck: the kernel gives each the same share of a busy machine.
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: 'ignore', detached: true })
  owner.spawned(child)
  await untilAnswer(Number(env.PORT))
  return { port: Number(env.PORT), pid: Number(child.pid) }
}

/** @param {string[]} args @param {string} cwd @param {Record<string, string>} env @returns {Promise<Running>} */
async function startManaged (args, cwd, env) {
  const deck = await startDeck(owner, null, { workers: 1, cwd, args, env })
  await deck.until({ ready: 1 })
  const { workers: [{ pid }] } = await deck.status()
  return { port: Number(env.PORT), pid }
}

/** @param {Record<Way, Running>} running @param {number} round @returns {Promise<Record<Way, Figures>>} */
async function measureByTurns (running, round) {
  await pin(WAYS.map((way) => running[way].pid))
  for (const way of WAYS) await warmUp(running[way])
  const figures = /** @type {Record<Way, Figures>} */ ({})
  // Who is first in a round takes turns too.
  for (let turn = 0; turn < WAYS.length; turn++) {
    const way = WAYS[(round + turn) % WAYS.length]
    figures[way] = await measure(running[way])
  }
  return figures
}

/** @param {Running} running */
async function warmUp ({ port }) {
  for (let answered = 0; answered < WARM_REQUESTS;) {
    const more = await saturate(port, { path: '/hello', connections: CONNECTIONS, seconds: 1 })
    if (!more) throw new Error(`nobody answers at port ${port}`)
    answered += more
  }
}

/** @param {Running} running @returns {Promise<Figures>} */
async function measure ({ port, pid }) {
  const [before, startedAt] = [cpuMs([pid]), performance.now()]
  const requests = await saturate(port, { path: '/hello', connections: CONNECTIONS, seconds: SECONDS })
  return { perSecond: requests / (performance.now() - startedAt) * 1000, microseconds: (cpuMs([pid]) - before) * 1000 / requests }
}

/** @param {string} name @param {Record<Way, Figures>[]} rounds */
function toLine (name, rounds) {
  const of = (/** @type {Way} */ way, /** @type {keyof Figures} */ what) => rounds.map((round) => round[way][what])
  const cells = (/** @type {keyof Figures} */ what) => [
    spreadOf(of('alone', what)), ratiosTo(of('managed', what), of('alone', what)), ratiosTo(of('again', what), of('alone', what))
  ]
  return `| ${[name, ...cells('perSecond'), ...cells('microseconds')].join(' | ')} |`
}
