// What it costs a program of another language to run under clusterdeck: CPU a request, next to the same program alone.
// All are loaded at once on one core: so whatever else the machine does disturbs each in the same way.
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
/** @typedef {'alone' | 'managed' | 'again'} Way `again`: alone as well, which tells what a difference means */

const WAYS = /** @type {Way[]} */ (['alone', 'managed', 'again'])
const ROUNDS = Number(process.argv[2] ?? 15)
const NAMES = process.argv.length > 3 ? process.argv.slice(3) : ['bun-serve', 'go-http', 'asio', 'netty']
const SECONDS = 3
// By then the JVM has compiled Netty.
const WARM_REQUESTS = 300_000
const CONNECTIONS = 8
const owner = createOwner()

console.log(`µs of CPU a request, ${ROUNDS} rounds of new processes, ${SECONDS} s each with ${CONNECTIONS} connections that stay; medians (smallest to largest)\n`)
console.log('| program | alone | under clusterdeck ÷ alone | alone again ÷ alone |\n| --- | --- | --- | --- |')
for (const name of NAMES) console.log(toLine(name, await compare(name)))

/** @param {string} name @returns {Promise<Record<Way, number>[]>} */
async function compare (name) {
  const program = PROGRAMS.find((each) => each.name === name)
  if (!program) throw new Error(`there is no program ${name}`)
  const { folder, env } = await install(program)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await begin(startAlone)
    rounds.push(await measureAtOnce({ alone, managed: await begin(startManaged), again: await begin(startAlone) }))
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

/** @param {Record<Way, Running>} running @returns {Promise<Record<Way, number>>} */
async function measureAtOnce (running) {
  await pin(WAYS.map((way) => running[way].pid))
  await Promise.all(WAYS.map((way) => warmUp(running[way])))
  const [alone, managed, again] = await Promise.all(WAYS.map((way) => measure(running[way])))
  return { alone, managed, again }
}

/** @param {Running} running */
async function warmUp ({ port }) {
  for (let answered = 0; answered < WARM_REQUESTS;) {
    const more = await load(port, 1)
    if (!more) throw new Error(`nobody answers at port ${port}`)
    answered += more
  }
}

/** @param {Running} running @returns {Promise<number>} microseconds of its processors for a request */
async function measure ({ port, pid }) {
  const before = cpuMs([pid])
  const requests = await load(port, SECONDS)
  return (cpuMs([pid]) - before) * 1000 / requests
}

/** @param {number} port @param {number} seconds */
function load (port, seconds) {
  return saturate(port, { path: '/hello', connections: CONNECTIONS, seconds })
}

/** @param {string} name @param {Record<Way, number>[]} rounds */
function toLine (name, rounds) {
  const [alone, managed, again] = WAYS.map((way) => rounds.map((round) => round[way]))
  return `| ${[name, spreadOf(alone), ratiosTo(managed, alone), ratiosTo(again, alone)].join(' | ')} |`
}
