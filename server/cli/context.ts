import { once } from 'node:events'
import { DeckError } from '../errors.ts'
import { createApiClient } from './api-client.ts'
import { confirm } from './confirm.ts'
import { flagOfDeck } from './deck-options.ts'
import { timeoutOf } from './duration.ts'
import { findMaster, type Master } from './find-master.ts'
import { expectHost } from './host.ts'
import { jsonText } from './output.ts'
import { checkAnswers } from './reachable.ts'
import type { Context, Options, Tools } from './commands.ts'
import type { Terminal } from './program.ts'

/**
 * Finds the master that a command is for.
 * @throws {import('../errors.ts').DeckError} as findMaster() and checkAnswers() do
 */
export async function createContext (options: Options, terminal: Terminal): Promise<Context> {
  const { env, cwd } = terminal
  const { member } = options
  const master = { ...await findMaster(options, { env, cwd }), member }
  return await contextAt(master, { options, terminal,
    findAgain: async () => ({
      ...await findMaster({ ...options, dataDir: master.dataDir, name: undefined, app: undefined }, { env, cwd }),
      member
    }) })
}

/**
 * The same, but of the host for all of its apps where that is meant, or where no app is named and this folder is of
 * none.
 */
export async function createContextOrHost (options: Options, terminal: Terminal): Promise<Context> {
  const wanted = options.host ? '--host' : options.apps === undefined ? null : '--apps'
  if (wanted === null) {
    try {
      return await createContext(options, terminal)
    } catch (error) {
      if (!(error instanceof DeckError && error.details.isFolderOfNone)) throw error
    }
  }
  const flag = flagOfDeck(options)
  if (flag !== null && flag !== '--url')
    throw new DeckError('usage', `${wanted}: expected without ${flag}, received both`)
  const findAgain = async (): Promise<Master> => ({
    ...flag === null ? expectHost(terminal.env) : await findMaster(options, terminal),
    below: '/host'
  })
  return await contextAt(await findAgain(), { options, terminal, findAgain })
}

async function contextAt (master: Master,
  { options, terminal, findAgain }: { options: Options, terminal: Terminal, findAgain: () => Promise<Master> })
{
  const { env, cwd } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  if (!isPatient(options, env)) await checkAnswers(master, { env })
  return { ...createTools(options, terminal), api: createApiClient(master, { timeoutMs, findAgain }), master, findAgain,
    options, cwd, env, timeoutMs }
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
