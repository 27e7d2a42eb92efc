// What it costs a program of another language to run under clusterdeck: the same program on the same core alone, by turns.
// `node test/bench/programs.js [rounds]`
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

const NAMES = ['bun-serve', 'go-http']
const ROUNDS = Number(process.argv[2] ?? 9)
const SECONDS = 3
const CONNECTIONS = 32
const owner = createOwner()

console.log(`One copy on a core of its own, ${CONNECTIONS} connections that stay from the other core, ${ROUNDS} rounds by turns of ${SECONDS} s; medians (smallest to largest)\n`)
console.log('| program | requests/s alone | under clusterdeck | ÷ alone | µs of CPU a request alone | under clusterdeck | alone ÷ under clusterdeck |\n| --- | --- | --- | --- | --- | --- | --- |')
for (const name of NAMES) console.log(await compare(name))

/** @param {string} name */
async function compare (name) {
  const program = PROGRAMS.find((each) => each.name === name)
  if (!program) throw new Error(`there is no program ${name}`)
  const { folder, env } = await install(program)
  const place = { folder, port: await freePort(), secondPort: 0, state: tempFolder(), socket: '', upstream: '' }
  const command = program.command(place)
  const alone = await startAlone(command, folder, { ...env, PORT: String(place.port) })
  const port = await freePort()
  const managed = await startManaged(program.command({ ...place, port }), folder, { ...env, PORT: String(port) })
  const rounds = await measureByTurns(alone, managed)
  await owner.end()
  return toLine(name, rounds)
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

/** @param {Running} alone @param {Running} managed @returns {Promise<{ alone: Figures, managed: Figures }[]>} */
async function measureByTurns (alone, managed) {
  await pin([alone.pid, managed.pid])
  for (const each of [alone, managed]) await measure(each)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    // Who is first in a round takes turns too.
    const order = round % 2 === 0 ? [alone, managed] : [managed, alone]
    const figures = [await measure(order[0]), await measure(order[1])]
    rounds.push({ alone: figures[order.indexOf(alone)], managed: figures[order.indexOf(managed)] })
  }
  return rounds
}

/** @param {Running} running @returns {Promise<Figures>} */
async function measure ({ port, pid }) {
  const [before, startedAt] = [cpuMs([pid]), performance.now()]
  const requests = await saturate(port, { path: '/hello', connections: CONNECTIONS, seconds: SECONDS })
  return { perSecond: requests / (performance.now() - startedAt) * 1000, microseconds: (cpuMs([pid]) - before) * 1000 / requests }
}

/** @param {string} name @param {{ alone: Figures, managed: Figures }[]} rounds */
function toLine (name, rounds) {
  const of = (/** @type {'alone' | 'managed'} */ who, /** @type {keyof Figures} */ what) => rounds.map((round) => round[who][what])
  const cells = [
    name, spreadOf(of('alone', 'perSecond')), spreadOf(of('managed', 'perSecond')), ratiosTo(of('managed', 'perSecond'), of('alone', 'perSecond')),
    spreadOf(of('alone', 'microseconds')), spreadOf(of('managed', 'microseconds')), ratiosTo(of('alone', 'microseconds'), of('managed', 'microseconds'))
  ]
  return `| ${cells.join(' | ')} |`
}
