import { readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import { DeckError, loadFailure } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { beforeSeparator, commandOf, startsApps } from './arguments.ts'
import { addHelpCommand, DeckCommand } from './help.ts'
import { inPlaceOf } from './pm2-words.ts'
import { shownStream } from './shown-stream.ts'
import { addHostOptions, addStartOptions, appArguments, appWords, startHostOfUser, startInForeground } from './start.ts'

/** Where a command line runs. */
export type Terminal = {
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  /** who can be asked */
  stdin?: NodeJS.ReadStream,
  env: Record<string, string | undefined>,
  cwd: string,
  /** the real path of `cwd` at the start, where a link led to it */
  home?: string,
  /** the file that was called */
  script: string
}

/** What decides which master is found. */
export type Place = Pick<Terminal, 'env' | 'cwd'>

/** These commands become a master. */
const MASTERS = ['start', 'host']
const USAGE_EXIT_CODE = 2
const EXIT_CODES =
  '0 ok, 1 failed, 2 usage, 3 not authorised, 4 not possible now, as something else runs or has changed, 5 no master is running, 6 doctor has found a problem, 124 timed out.'
const { version, description } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** Runs one command line. `argv`: without node and script. Returns the exit code. */
export async function runProgram (argv: string[], terminal: Terminal): Promise<number> {
  const outcome = { exitCode: 0 }
  const shown = { ...terminal, stdout: shownStream(terminal.stdout), stderr: shownStream(terminal.stderr) }
  const program = await createProgram(argv, shown, outcome)
  try {
    await program.parseAsync(beforeSeparator(argv), { from: 'user' })
    return outcome.exitCode
  } catch (error) {
    return reportError(error, shown)
  }
}

export async function createProgram (argv: string[], terminal: Terminal, outcome: { exitCode: number }) {
  // A script that completes names wants them at once, and nothing of the options.
  const isScript = commandOf(argv) === 'completion' && !argv.includes('apps')
  const isWanted = (name: string) => argv.includes(name) || isScript
  const program = new DeckCommand('clusterdeck').description(description).version(version, '-V, --version',
    'print the version').helpOption('-h, --help', 'print this help').helpCommand(false).exitOverride().configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(inOurWords(text, commandOf(argv)))
    }).addHelpText('after', `\nExit codes: ${EXIT_CODES}`).example('run an app on all CPUs', 'clusterdeck start app.js')
    .example('see its state', 'clusterdeck status').example('deploy new code, and fail if that fails',
      'clusterdeck deploy --wait --note "faster totals"')

  const start = program.told('start').action(
    async (words, { detach, wait, timeout, all, apply, json, traceStart, ...flags }) => {
      const given = { ...(detach && { detach }), ...(!wait && { noWait: true }),
        ...(timeout !== undefined && { timeout }), ...(all && { all }), ...(apply && { apply }), ...(json && { json }) }
      const isOfApps = await startsApps(argv, terminal)
      if (!isOfApps && Object.keys(given).length === 0 && words.length <= 1) {
        const { keeper, ...own } = flags
        outcome.exitCode = await startInForeground({ ...own, ...appWords(argv, words[0], flags) }, terminal)
        return
      }
      const { startInHost } = await import('./start-in-host.ts')
      outcome.exitCode = await startInHost(words, {
        flags: { ...flags, ...(isOfApps ? appArguments(argv) : appWords(argv, words[0], flags)) },
        given,
        isOfApps
      }, terminal)
    }
  )
  // The other commands start faster without the schema of the options.
  if (isWanted('start')) {
    await addStartOptions(start)
    start.option('--trace-start <file>',
      'write where the time of the start goes into a file that Perfetto and chrome://tracing show')
  }

  const host = program.told('host').action(async ({ detach, keeper, ...flags }) => {
    if (!detach) {
      outcome.exitCode = await startHostOfUser(flags, terminal)
      return
    }
    const { detachHost } = await import('./start-in-host.ts')
    await detachHost({ keeper, ...flags }, terminal)
  })
  if (isWanted('host')) await addHostOptions(host)

  // A master starts faster without the other commands.
  if (!MASTERS.includes(String(commandOf(argv)))) {
    const { addClientCommands } = await import('./client-commands.ts')
    await addClientCommands(program, { argv, terminal, outcome }, isWanted)
  }
  addHelpCommand(program)
  return program
}

/** @returns the exit code */
function reportError (cause: unknown, { stderr }: Terminal): number {
  const error = cause instanceof DeckError ? cause : loadFailure(cause) ?? cause
  if (error instanceof DeckError) {
    stderr.write(`clusterdeck: ${oneLine(error.message)}\n`)
    return error.exitCode
  }
  // Commander has printed what is wrong, or the help or version that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT_CODE
  stderr.write(`clusterdeck: internal error, please report it\n${error instanceof Error ? error.stack : error}\n`)
  return 1
}

/** `text`: what commander says: `error: unknown option '--wrokers'\n(Did you mean --workers?)` */
function inOurWords (text: string, command: string | undefined) {
  const line = text.trim().replace(/^error: /, '').replace(/\n\(Did you mean (.*)\?\)$/s, ' (did you mean $1?)')
    .replace(/'/g, '"')
  const hint = /^too many arguments for "(start|systemd|install)"/.test(line)
    ? ' Arguments for the app go after --.'
    : ''
  return `clusterdeck: ${inPlaceOf(line, command)}${hint}\n`
}
