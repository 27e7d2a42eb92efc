import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { readableText } from '../system/one-line.ts'
import { createApiClient } from './api-client.ts'
import { findMaster, findNext, type Master } from './find-master.ts'
import { jsonText } from './output.ts'
import { checkAnswers } from './reachable.ts'
import { drawnStream } from './shown-stream.ts'
import { timeoutOf } from './usage.ts'
import type { Context, Options, Tools } from './commands.ts'
import type { Place, Terminal } from './program.ts'

/**
 * Finds the master that a command is for. `find`: the one that is meant
 * @throws {import('../errors.ts').DeckError} as findMaster() and checkAnswers() do
 */
export async function createContext (options: Options, terminal: Terminal,
  find: (options: Options, place: Place) => Promise<Master> = findMaster): Promise<Context>
{
  const { env, cwd } = terminal
  // This host itself asks the others for a list of several hosts, so the call is not passed on to a member.
  const ofMember = (found: Master) => found.below || options.allHosts ? found : { ...found, member: options.member }
  const master = ofMember(await find(options, terminal))
  const findAgain = async () => ofMember(await findNext(master, options, terminal))
  const { timeoutMs } = timeoutOf(options, env)
  if (!isPatient(options, env)) await checkAnswers(master, { env })
  const anew = () => createApiClient(master, { timeoutMs, findAgain })
  return { ...createTools(options, terminal), api: anew(), anew, master, findAgain, options, cwd, env, timeoutMs }
}

/** What a command says its result with. */
export function createTools (options: Options,
  { stdin, stdout, stderr, env }: Pick<Terminal, 'stdin' | 'stdout' | 'stderr' | 'env'>): Tools
{
  const print = (text: string) => {
    stdout.write(`${text}\n`)
  }
  return { print, answer: (value, textOf) => print(options.json ? jsonText(value) : textOf()), keep: null,
    confirm: (question) => confirm(question, { stdin, stderr }), async write (text) {
    if (stdout.write(text) === false) await once(stdout, 'drain')
  }, writeError: (text) => {
    stderr.write(text)
  }, tell: (text) => {
    stderr.write(`${text}\n`)
  }, stdout, isTerminal: Boolean(stdout.isTTY), canDraw: Boolean(stdout.isTTY) && env.TERM !== 'dumb',
    isInteractive: Boolean(stdout.isTTY && stderr.isTTY) }
}

/** A command that waits anyway also waits while a master is being replaced. */
function isPatient ({ wait, follow, watch, timeout }: Options, env: Terminal['env']) {
  return Boolean(wait || follow || watch || timeout || env.CLUSTERDECK_TIMEOUT)
}

/** Asks whoever sits at the terminal. Returns null: nobody can be asked. */
async function confirm (question: string,
  { stdin = process.stdin, stderr }: Pick<Terminal, 'stdin' | 'stderr'>): Promise<boolean | null>
{
  if (!stdin.isTTY) return null
  const asking = createInterface({ input: stdin, output: drawnStream(stderr) })
  const reply = await asking.question(`${readableText(question)} [y/N] `)
  asking.close()
  return /^y(es)?$/i.test(reply.trim())
}
