// What it costs a program of another language to run under clusterdeck: CPU a request, next to the same program alone.
// All are loaded at once on one core: so whatever else the machine does disturbs each in the same way.
// `node test/bench/programs.ts [rounds] [programs of the gallery, one process each]`
import { spawn } from 'node:child_process'
import { createOwner } from '../support/owner.ts'
import { ratiosTo, spreadOf } from './figures.ts'
import { pin, saturate, untilAnswer } from './compare/client.ts'
import { install } from '../programs/installation.ts'
import { PROGRAMS, type Program } from '../programs/programs.ts'
import { startDeck } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { cpuMs } from '../support/process-figures.ts'

type Running = { port: number, pid: number }
/** `again`: alone as well, which tells what a difference means */
type Way = 'alone' | 'managed' | 'again'

const WAYS = ['alone', 'managed', 'again'] as Way[]
const ROUNDS = Number(process.argv[2] ?? 15)
const NAMES = process.argv.length > 3 ? process.argv.slice(3) : ['bun-serve', 'go-http', 'asio', 'netty']
const SECONDS = 3
// By then the JVM has compiled Netty.
const WARM_REQUESTS = 300_000
const CONNECTIONS = 8
const owner = createOwner()

console.log(
  `µs of CPU a request, ${ROUNDS} rounds of new processes, ${SECONDS} s each with ${CONNECTIONS} connections that stay; medians (smallest to largest)\n`
)
console.log('| program | alone | under clusterdeck ÷ alone | alone again ÷ alone |\n| --- | --- | --- | --- |')
for (const name of NAMES) console.log(toLine(name, await compare(name)))

async function compare (name: string): Promise<Record<Way, number>[]> {
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

  async function begin (start: typeof startAlone) {
    const place = { folder, port: await freePort(), secondPort: 0, state: tempFolder(), socket: '', upstream: '' }
    return await start((program as Program).command(place), folder, { ...env, PORT: String(place.port) })
  }
}

async function startAlone ([file, ...args]: string[], cwd: string, env: Record<string, string>): Promise<Running> {
  // A session of its own, as under clusterdeck: the kernel gives each the same share of a busy machine.
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: 'ignore', detached: true })
  owner.spawned(child)
  await untilAnswer(Number(env.PORT))
  return { port: Number(env.PORT), pid: Number(child.pid) }
}

async function startManaged (args: string[], cwd: string, env: Record<string, string>): Promise<Running> {
  const deck = await startDeck(owner, null, { workers: 1, cwd, args, env })
  const { workers: [{ pid }] } = await deck.until({ ready: 1 })
  return { port: Number(env.PORT), pid }
}

async function measureAtOnce (running: Record<Way, Running>): Promise<Record<Way, number>> {
  await pin(WAYS.map((way) => running[way].pid))
  await Promise.all(WAYS.map((way) => warmUp(running[way])))
  const [alone, managed, again] = await Promise.all(WAYS.map((way) => measure(running[way])))
  return { alone, managed, again }
}

async function warmUp ({ port }: Running) {
  for (let answered = 0; answered < WARM_REQUESTS;) {
    const more = await load(port, 1)
    if (!more) throw new Error(`nobody answers at port ${port}`)
    answered += more
  }
}

/** @returns microseconds of its processors for a request */
async function measure ({ port, pid }: Running): Promise<number> {
  const before = cpuMs([pid])
  const requests = await load(port, SECONDS)
  return (cpuMs([pid]) - before) * 1000 / requests
}

function load (port: number, seconds: number) {
  return saturate(port, { path: '/hello', connections: CONNECTIONS, seconds })
}

function toLine (name: string, rounds: Record<Way, number>[]) {
  const [alone, managed, again] = WAYS.map((way) => rounds.map((round) => round[way]))
  return `| ${[name, spreadOf(alone), ratiosTo(managed, alone), ratiosTo(again, alone)].join(' | ')} |`
}
