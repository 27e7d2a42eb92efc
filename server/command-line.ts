import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeSeparator, commandOf, startsApps } from './cli/arguments.ts'
import { attempt, errorText, MIN_FILES, tooFewFiles } from './errors.ts'
import { leaveLean } from './keeper/lean.ts'
import { FOLDER_VARIABLE, KEPT_VARIABLE } from './keeper/link.ts'
import { tellNotLoaded } from './not-loaded.ts'
import { TYPED_VARIABLE, typedNode } from './run-on.js'
import { descriptorLimit } from './system/descriptors.ts'
import { SHELL_VARIABLE } from './system/own-variables.ts'
import { describeShell } from './system/shell-limits.ts'
import { beginTrace, TRACE_VARIABLE, traceProcess, traceStep } from './system/start-trace.ts'
import { hasControllingTerminal } from './system/terminal.ts'
import { standOn, workingFolder, type WorkingFolder } from './system/working-folder.ts'
import type { Terminal } from './cli/program.ts'

const CLI = fileURLToPath(new URL('cli.js', import.meta.url))

/** Runs one command line. `argv`: without node and script. Returns the exit code. */
export async function runCommandLine (argv: string[], terminal: Omit<Terminal, 'script'>): Promise<number> {
  const { runProgram } = await import('./cli/program.ts')
  return await runProgram(argv, { ...terminal, script: ownScript() })
}

/** The keeper's code is loaded here only: masters and other commands start faster without it. */
async function beKeeper (args: string[], folder: WorkingFolder) {
  traceProcess('keeper')
  const { runKeeper } = await import('./keeper/keeper.ts')
  traceStep('the code of the keeper')
  return await runKeeper({ script: process.argv[1], args, folder })
}

/** @returns that of this process, or of the keeper that has started it */
function ownFolder (): WorkingFolder {
  const { [FOLDER_VARIABLE]: told, [KEPT_VARIABLE]: keeper } = process.env
  delete process.env[FOLDER_VARIABLE]
  leaveLean(process.env)
  return told !== undefined && keeper === String(process.ppid) ? JSON.parse(told) : workingFolder()
}

/** Decides without reading the options, as a keeper loads as little code as it can. */
function wantsKeeper (argv: string[], env: Record<string, string | undefined>) {
  if (env[KEPT_VARIABLE] || env.CLUSTERDECK_KEEPER === 'off') return false
  return !beforeSeparator(argv).some((word) => ['--no-keeper', '-h', '--help'].includes(word))
}

/** Tells whether this becomes a master, of an app or of the host, and is no order to the host. */
async function isMaster (argv: string[], env: Record<string, string | undefined>) {
  const command = commandOf(argv)
  if (command !== 'start' && command !== 'host') return false
  if (env[KEPT_VARIABLE]) return true
  if (beforeSeparator(argv).some((word) => word === '--detach' || word.startsWith('-d'))) return false
  return command === 'host' || !await startsApps(argv, { env, cwd: workingFolder().named })
}

/** Keeps the link by which the command was called: it may lead to a newer version some day. */
function ownScript () {
  // A master may be started without a file, as by `node --eval`.
  const isCommand = attempt(() => process.argv[1] !== undefined && realpathSync(process.argv[1]) === CLI)
  return isCommand ? resolve(process.argv[1]) : CLI
}

/** Leaves the preloads in NODE_OPTIONS to the app. */
async function beWithoutPreloads ({ isKeeper }: { isKeeper: boolean }) {
  const { env } = process
  if (env.NODE_OPTIONS === undefined) return
  const { leavePreloads, restoreNodeOptions } = await import('./cli/node-options.ts')
  const { executeAgain } = await import('./system/execute.ts')
  // A keeper starts its master without them already.
  if (!env[KEPT_VARIABLE]) leavePreloads(env, { again: executeAgain })
  // The children of a keeper are masters, which need none.
  if (!isKeeper) restoreNodeOptions(env)
}

/** Begins the trace that `--trace-start` asks for. Returns false: its file cannot be written, which is told. */
function beginWantedTrace (argv: string[]): boolean {
  const words = beforeSeparator(argv)
  const at = words.findIndex((word) => word === '--trace-start' || word.startsWith('--trace-start='))
  const file = at < 0 ? undefined : words[at].split(/=(.*)/s)[1] ?? words[at + 1]
  // Its keeper has begun it.
  if (file === undefined || process.env[KEPT_VARIABLE]) return true
  try {
    process.env[TRACE_VARIABLE] = beginTrace(file, workingFolder().named)
    return true
  } catch (error) {
    process.stderr.write(`clusterdeck: ${errorText(error)}\n`)
    process.exitCode = 2
    return false
  }
}

/** @returns false, which is told: a master would start, and then run out of descriptors for ever */
function mayOpenEnough (): boolean {
  const limit = descriptorLimit()
  if (limit >= MIN_FILES) return true
  process.stderr.write(`clusterdeck: ${tooFewFiles(limit)}\n`)
  return false
}

/** These have something left to do where nobody reads what they write. */
const OUTLIVES_READER = ['up', 'top']

/** What a process of clusterdeck does: it runs its own command line, and ends with it. */
export async function runProcess () {
  const args = process.argv.slice(2)
  if (!beginWantedTrace(args)) return
  traceStep('Node, and the code of the command line')
  const becomesMaster = await isMaster(args, process.env)
  if (becomesMaster && !mayOpenEnough()) process.exit(1)
  const isKeeper = becomesMaster && wantsKeeper(args, process.env)
  await beWithoutPreloads({ isKeeper })
  const command = String(commandOf(args))
  // Once, as the next masters have another parent.
  if (becomesMaster && command === 'start' && !process.env[KEPT_VARIABLE])
    Object.assign(process.env, { [SHELL_VARIABLE]: describeShell() ?? '', [TYPED_VARIABLE]: typedNode(process.env) })
  // These run until they are stopped.
  const isLasting = becomesMaster || command === 'up'
  // `clusterdeck history | head` closes the pipe early; that is no failure. A master must not end by it.
  if (OUTLIVES_READER.includes(command)) {
    // The reader may have ended by the same Ctrl-C, or be a terminal that was closed. Something is still to be done
    // then.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  } else if (!isLasting) {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
    process.stderr.on('error', () => {})
  }
  const folder = ownFolder()
  standOn(folder.named)
  const hadTerminal = hasControllingTerminal()
  const { stdout, stderr, env } = process
  const work = isKeeper
    ? beKeeper(args, folder)
    : runCommandLine(args, { stdout, stderr, env, cwd: folder.named, home: folder.real })
  const exitCode = await work.catch(tellNotLoaded)
  // Where the terminal has gone, Node aborts at its exit. So this ends by SIGHUP, as without a handler.
  if (hadTerminal && !hasControllingTerminal()) {
    process.removeAllListeners('SIGHUP')
    process.kill(process.pid, 'SIGHUP')
  }
  // An exit would cut off output that is still on its way into a pipe. A master does not wait for its readers.
  if (!isLasting)
    await Promise.all([stdout, stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))))
  process.exit(exitCode)
}
