import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.ts'
import { readPackage } from '../launch/packages.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { programOf, type Look } from './program.ts'
import type { ProcessFacts } from '../programs/holder.ts'

const NODE = /^node(js)?(\d+)?$/
/** What a service manager, a shell or the parent of a Node process has told this process alone. */
const OF_THIS_PROCESS =
  /^(_|SHLVL|OLDPWD|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|MAINPID|MEMORY_PRESSURE_\w+|NODE_CHANNEL_\w+|NODE_UNIQUE_ID|SUDO_\w+)$/

/**
 * What `clusterdeck start` would have to be told to run the same as a process does: nothing, where its command line
 * does not tell, and the script "start" of its folder does.
 * @returns by the key of the option
 * @throws {DeckError} not-possible: its command line does not tell
 */
export function flagsOfProcess ({ pid, file, words, cwd }: ProcessFacts,
  look: Look): Record<string, string | string[]>
{
  const [command, ...args] = words
  const isNode = NODE.test(path.basename(file))
  // Of a process that has given itself a title, that title is all that is left of its command line.
  if (command === undefined || command === '' || (args.length === 0 && (isNode || /\s/.test(command)))) {
    // What that script starts has to serve on the same addresses, or the process goes on as before.
    if (typeof readPackage(cwd)?.content.scripts?.start === 'string') return {}
    throw untold(pid, command)
  }
  if (!isNode) return { entry: command, ...(args.length > 0 && { args }) }
  const program = programOf({ script: 'node', args }, { cwd, look })
  if ('reason' in program || !existsSync(program.entry)) throw untold(pid, words.join(' '))
  const { entry, args: ofApp, execArgv } = program
  return { entry, ...(ofApp.length > 0 && { args: ofApp }), ...(execArgv.length > 0 && { execArgv }) }
}

/** @returns its variables that are meant for the app */
export function variablesOfProcess ({ env }: ProcessFacts): Record<string, string> {
  const kept = Object.entries(withoutOwnVariables(env)).filter(([name, value]) =>
    value !== undefined && !OF_THIS_PROCESS.test(name)
  )
  return Object.fromEntries(kept as [string, string][])
}

function untold (pid: number, text: string | undefined) {
  return new DeckError('not-possible',
    `the command line of process ${pid} does not tell what it runs (${
      JSON.stringify(text ?? '')
    }): write what it is into a clusterdeck.config.mjs in its folder, { entry: "…" }, and call this again`)
}
