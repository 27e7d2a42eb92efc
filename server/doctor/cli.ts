import { count } from '../words/health.ts'
import { oneLine } from '../system/one-line.ts'
import { createTools } from '../cli/context.ts'
import type { Report } from './api.ts'
import type { Context, Options } from '../cli/commands.ts'
import type { Terminal } from '../cli/program.ts'

type Item = Report['items'][number]

/** So that a script can deploy only where nothing is wrong. */
const PROBLEM_EXIT_CODE = 6
const WIDTH = 11
/** Options that all commands have; all others are those of `start`. */
const OF_CLIENT = Object.freeze(['json', 'all', 'dataDir', 'app', 'name', 'url', 'token', 'tokenFile', 'timeout',
  'member'])
const LABELS: Readonly<Record<Item['severity'], string>> = Object.freeze({ error: 'ERROR', warning: 'WARNING',
  unknown: 'NOT KNOWN', info: 'INFO', ok: 'OK' })
/** What stands before a line that mends something. */
const PLACES: Readonly<Record<Item['mend'][number]['how'], string>> = Object.freeze({ command: 'run in',
  option: 'set in', flags: 'add to', code: '' })

/** Has a running master examine its app. Returns the exit code. */
export async function doctorCommand ({ api, answer }: Context): Promise<number> {
  const report: Report = await api.get('/checks')
  answer(report, () => reportText(report))
  return exitCodeOf(report)
}

/**
 * Examines what a start in this folder would run. `options`: with those of `start`; `args`: of the app. Returns the
 * exit code.
 * @throws {import('../errors.ts').DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function doctorHere (entry: string | undefined, options: Options & Record<string, unknown>,
  terminal: Terminal, args: readonly string[]): Promise<number>
{
  const { env, cwd, home } = terminal
  const [{ configFileOf, loadConfig }, { createSettings }, { OPTIONS }, { appName }, { examine }] = await Promise.all([
    import('../config/config.ts'),
    import('../config/settings.ts'),
    import('../config/option-list.ts'),
    import('../config/app-name.ts'),
    import('./doctor.ts')
  ])
  const { config: file, app } = options
  const config = await loadConfig({
    flags: { ...Object.fromEntries(OPTIONS.map(({ key }) => [key, options[key]])), entry,
      ...(args.length > 0 && { args }), ...(typeof file === 'string' && { config: file }), app },
    env,
    cwd,
    home
  })
  const report = await examine({
    config,
    // Only a digest of the settings needs the key, and nobody asks for one here.
    settings: createSettings(config, { key: 'none' }).list(),
    configFile: configFileOf(config),
    name: appName(config),
    env,
    known: null
  })
  const { answer } = createTools(options, terminal)
  answer(report, () => reportText(report))
  return exitCodeOf(report)
}

/** Tells whether a start is meant that has not been, with options of its own */
export function isBeforeStart (entry: string | undefined, options: Record<string, unknown>): boolean {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  // Without --no-keeper, `keeper` is true.
  return entry !== undefined ||
    given.some(([key, value]) => !OF_CLIENT.includes(key) && !(key === 'keeper' && value === true))
}

function exitCodeOf ({ problems }: Report) {
  return problems > 0 ? PROBLEM_EXIT_CODE : 0
}

function reportText ({ problems, isRunning, items }: Report) {
  const passed = items.filter(({ severity }) => severity === 'ok').length
  const counted = problems === 0 ? 'nothing found' : count(problems, 'problem')
  return [
    `${counted}, ${passed} of ${items.length} checks passed${
      isRunning ? '' : '; the app does not run, so nothing is known of its workers'
    }`,
    ...items.map(itemText)
  ].join('\n')
}

function itemText ({ severity, title, why, mend }: Item) {
  const lines = severity === 'ok' ? [title] : [title, why, ...mend.map(mendText)]
  return lines.filter(Boolean).map((line, index) =>
    `${(index === 0 ? LABELS[severity] : '').padEnd(WIDTH)}${oneLine(line)}`
  ).join('\n')
}

function mendText ({ how, text, where }: Item['mend'][number]) {
  if (how === 'code') return text
  return `${where === null ? 'run' : `${PLACES[how]} ${where}`}: ${text}`
}
