import { once } from 'node:events'
import { createApiClient } from './api-client.js'
import { confirm } from './confirm.js'
import { timeoutOf } from './duration.js'
import { findMaster } from './find-master.js'
import { jsonText } from './output.js'
import { checkAnswers } from './reachable.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('./commands.js').Options} Options */
/** @typedef {import('./program.js').Terminal} Terminal */

/**
 * Finds the master that a command is for.
 * @param {Options} options @param {Terminal} terminal
 * @returns {Promise<Context>}
 * @throws {import('../errors.js').DeckError} as findMaster() and checkAnswers() do
 */
export async function createContext (options, terminal) {
  const { env, cwd } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const { member } = options
  const master = { ...await findMaster(options, { env, cwd }), member }
  if (!isPatient(options, env)) await checkAnswers(master, { env })
  const findAgain = async () => ({ ...await findMaster({ ...options, dataDir: master.dataDir, name: undefined, app: undefined }, { env, cwd }), member })
  return {
    ...createTools(options, terminal),
    api: createApiClient(master, { timeoutMs, findAgain }),
    master,
    findAgain,
    options,
    cwd,
    timeoutMs
  }
}

/**
 * What a command says its result with.
 * @param {Options} options @param {Pick<Terminal, 'stdin' | 'stdout' | 'stderr' | 'env'>} terminal
 * @returns {import('./commands.js').Tools}
 */
export function createTools (options, { stdin, stdout, stderr, env }) {
  const print = (/** @type {string} */ text) => { stdout.write(`${text}\n`) }
  return {
    print,
    answer: (value, textOf) => print(options.json ? jsonText(value) : textOf()),
    keep: null,
    confirm: (question) => confirm(question, { stdin, stderr }),
    async write (text) {
      if (stdout.write(text) === false) await once(stdout, 'drain')
    },
    writeError: (text) => { stderr.write(text) },
    tell: (text) => { stderr.write(`${text}\n`) },
    stdout,
    isTerminal: Boolean(stdout.isTTY),
    canDraw: Boolean(stdout.isTTY) && env.TERM !== 'dumb',
    isInteractive: Boolean(stdout.isTTY && stderr.isTTY)
  }
}

/** A command that waits anyway also waits while a master is being replaced. @param {Options} options @param {Terminal['env']} env */
function isPatient ({ wait, follow, watch, timeout }, env) {
  return Boolean(wait || follow || watch || timeout || env.CLUSTERDECK_TIMEOUT)
}
