import { count } from '../health.js'
import { oneLine } from '../system/one-line.js'
import { createTools } from './context.js'
import { jsonText } from './output.js'

/** @typedef {import('../api/checks.js').Report} Report */
/** @typedef {Report['items'][number]} Item */

/** So that a script can deploy only where nothing is wrong. */
const PROBLEM_EXIT_CODE = 6
const WIDTH = 11
/** Options that all commands have; all others are those of `start`. */
const OF_CLIENT = Object.freeze(['json', 'all', 'dataDir', 'app', 'name', 'url', 'token', 'tokenFile', 'timeout', 'member'])
/** @type {Readonly<Record<Item['severity'], string>>} */
const LABELS = Object.freeze({ error: 'ERROR', warning: 'WARNING', unknown: 'NOT KNOWN', info: 'INFO', ok: 'OK' })
/** What stands before a line that mends something. @type {Readonly<Record<Item['mend'][number]['how'], string>>} */
const PLACES = Object.freeze({ command: 'run in', option: 'set in', flags: 'add to', code: '' })

/**
 * Has a running master examine its app.
 * @param {import('./commands.js').Context} context @returns {Promise<number>} the exit code
 */
export async function doctorCommand ({ api, answer }) {
  /** @type {Report} */
  const report = await api.get('/checks')
  answer(report, () => reportText(report))
  return exitCodeOf(report)
}

/**
 * Examines what a start in this folder would run.
 * @param {string | undefined} entry @param {import('./commands.js').Options & Record<string, unknown>} options with those of `start`
 * @param {import('./program.js').Terminal} terminal @param {readonly string[]} args  of the app
 * @returns {Promise<number>} the exit code
 * @throws {import('../errors.js').DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function doctorHere (entry, options, terminal, args) {
  const { env, cwd, home } = terminal
  const [{ configFileOf, loadConfig }, { createSettings }, { OPTIONS }, { appName }, { examine }] = await Promise.all([
    import('../config/config.js'), import('../config/settings.js'), import('../config/option-list.js'), import('../config/app-name.js'), import('../doctor/doctor.js')
  ])
  const { config: file, app } = options
  const config = await loadConfig({ flags: { ...Object.fromEntries(OPTIONS.map(({ key }) => [key, options[key]])), entry, ...(args.length > 0 && { args }), ...(typeof file === 'string' && { config: file }), app }, env, cwd, home })
  const report = await examine({
    config,
    // Only a digest of the settings needs the key, and nobody asks for one here.
    settings: createSettings(config, { key: 'none' }).list(),
    configFile: configFileOf(config),
    name: appName(config),
    env,
    known: null
  })
  const { print } = createTools(options, terminal)
  print(options.json ? jsonText(report) : reportText(report))
  return exitCodeOf(report)
}

/**
 * @param {string | undefined} entry @param {Record<string, unknown>} options
 * @returns {boolean} whether a start is meant that has not been, with options of its own
 */
export function isBeforeStart (entry, options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  // Without --no-keeper, `keeper` is true.
  return entry !== undefined || given.some(([key, value]) => !OF_CLIENT.includes(key) && !(key === 'keeper' && value === true))
}

/** @param {Report} report */
function exitCodeOf ({ problems }) {
  return problems > 0 ? PROBLEM_EXIT_CODE : 0
}

/** @param {Report} report */
function reportText ({ problems, isRunning, items }) {
  const passed = items.filter(({ severity }) => severity === 'ok').length
  const counted = problems === 0 ? 'nothing found' : count(problems, 'problem')
  return [`${counted}, ${passed} of ${items.length} checks passed${isRunning ? '' : '; the app does not run, so nothing is known of its workers'}`, ...items.map(itemText)].join('\n')
}

/** @param {Item} item */
function itemText ({ severity, title, why, mend }) {
  const lines = severity === 'ok' ? [title] : [title, why, ...mend.map(mendText)]
  return lines.filter(Boolean).map((line, index) => `${(index === 0 ? LABELS[severity] : '').padEnd(WIDTH)}${oneLine(line)}`).join('\n')
}

/** @param {Item['mend'][number]} mend */
function mendText ({ how, text, where }) {
  if (how === 'code') return text
  return `${where === null ? 'run' : `${PLACES[how]} ${where}`}: ${text}`
}
