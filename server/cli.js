#!/usr/bin/env node
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeSeparator, commandOf } from './cli/arguments.js'
import { loadFailure } from './errors.js'
import { FOLDER_VARIABLE, KEPT_VARIABLE, tellFailure } from './keeper/link.js'
import { hasControllingTerminal } from './system/terminal.js'
import { standOn, workingFolder } from './system/working-folder.js'

/**
 * Runs one command line.
 * @param {string[]} argv without node and script
 * @param {Omit<import('./cli/program.js').Terminal, 'script'>} terminal
 * @returns {Promise<number>} the exit code
 */
export async function run (argv, terminal) {
  const { runProgram } = await import('./cli/program.js')
  return await runProgram(argv, { ...terminal, script: ownScript() })
}

/** Masters and other commands start faster without its code. @param {string[]} args @param {import('./system/working-folder.js').WorkingFolder} folder */
async function beKeeper (args, folder) {
  const { runKeeper: keep } = await import('./keeper/keeper.js')
  return await keep({ script: process.argv[1], args, folder })
}

/** @returns {import('./system/working-folder.js').WorkingFolder} of this process, or of the keeper that has started it */
function ownFolder () {
  const { [FOLDER_VARIABLE]: told, [KEPT_VARIABLE]: keeper } = process.env
  delete process.env[FOLDER_VARIABLE]
  return told !== undefined && keeper === String(process.ppid) ? JSON.parse(told) : workingFolder()
}

/**
 * Told without reading the options, which is the master's business: a keeper has as little code as it can.
 * @param {string[]} argv @param {Record<string, string | undefined>} env
 */
function wantsKeeper (argv, env) {
  if (commandOf(argv) !== 'start' || env[KEPT_VARIABLE]) return false
  return env.CLUSTERDECK_KEEPER !== 'off' && !beforeSeparator(argv).some((word) => ['--no-keeper', '-h', '--help'].includes(word))
}

/** This file, by the link that it was called by, which may lead to a newer version some day. */
function ownScript () {
  return isMain() ? resolve(process.argv[1]) : fileURLToPath(import.meta.url)
}

/** Whether this file is what node was started with, by whatever link. */
function isMain () {
  try {
    return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
  } catch {
    // Started without a file, as by `node --eval`.
    return false
  }
}

/** Our own code could not be loaded. @param {any} error @returns {number} the exit code */
function tellNotLoaded (error) {
  const told = loadFailure(error)
  if (told === null) throw error
  if (process.env[KEPT_VARIABLE]) tellFailure(told.message)
  process.stderr.write(`clusterdeck: ${told.message}\n`)
  return told.exitCode
}

/** What is in NODE_OPTIONS for the app stays with the app. @param {{ isKeeper: boolean }} role */
async function beWithoutPreloads ({ isKeeper }) {
  const { env } = process
  if (env.NODE_OPTIONS === undefined) return
  const [{ leavePreloads, restoreNodeOptions }, { executeAgain }] = await Promise.all([import('./cli/node-options.js'), import('./system/execute.js')])
  // A master is started without them by its keeper.
  if (!env[KEPT_VARIABLE]) leavePreloads(env, { again: executeAgain })
  // The children of a keeper are masters.
  if (!isKeeper) restoreNodeOptions(env)
}

/** Those that run until they are ended. */
const LASTING = ['start', 'up']

if (isMain()) {
  const args = process.argv.slice(2)
  const isKeeper = wantsKeeper(args, process.env)
  await beWithoutPreloads({ isKeeper })
  const command = String(commandOf(args))
  // `clusterdeck history | head` closes the pipe early; that is no failure. A master must not end by it.
  if (command === 'up') {
    // Whoever reads it has ended, perhaps by the same Ctrl-C: what it has started is still to be stopped.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  } else if (!LASTING.includes(command)) {
    process.stdout.on('error', (error) => process.exit(/** @type {any} */ (error).code === 'EPIPE' ? 0 : 1))
    process.stderr.on('error', () => {})
  }
  const folder = ownFolder()
  standOn(folder.named)
  const hadTerminal = hasControllingTerminal()
  const exitCode = isKeeper
    ? await beKeeper(args, folder)
    : await run(args, { stdout: process.stdout, stderr: process.stderr, env: process.env, cwd: folder.named, home: folder.real }).catch(tellNotLoaded)
  // Node would abort at its exit where its terminal has gone; so this ends as it would have without a handler.
  if (hadTerminal && !hasControllingTerminal()) {
    process.removeAllListeners('SIGHUP')
    process.kill(process.pid, 'SIGHUP')
  }
  // Output of a command that is still on its way into a pipe would be cut off. Whoever ends a master waits for no reader.
  if (!LASTING.includes(command)) await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))))
  process.exit(exitCode)
}
