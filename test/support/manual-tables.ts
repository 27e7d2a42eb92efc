import { readFileSync, writeFileSync } from 'node:fs'
import { COMMAND_NAMES, wordsOf } from '../../server/cli/command-words.ts'
import { operationsOf } from '../../server/admin/deck-site.ts'
import { hostOperations } from '../../server/admin/host-site.ts'
import { OPTIONS, type Option } from '../../server/config/options.ts'
import { EVENT_TYPES, kindOf } from '../../server/events/kinds.ts'
import { FILE_KEYS, KEYS } from '../../server/import/keys.ts'
import { createConfirmations } from '../../server/mcp/confirmations.ts'
import { createToolbox } from '../../server/mcp/tools.ts'
import { fake } from './fake.ts'
import type { Role } from '../../server/api/roles.ts'
import type { Mount } from '../../server/api/openapi.ts'

/** Headings of the manual's page of options, what they hold (beginnings of names), and the page that says more. */
const GROUPS: [string, (string | null)[], string?][] = [['General', [null, 'sticky', 'heartbeat'],
  '[Connections](connections.md)'], ['Admin page', ['admin'], '[Security](security.md)'], ['Start and readiness', [
  'ready'
], '[Readiness](readiness.md)'], ['Draining and stopping', ['drain'], '[How it works](how-it-works.md#drain)'], [
  'Restarts, hangs and recycling',
  ['restart', 'watchdog', 'recycle', 'limits'],
  '[How it works](how-it-works.md#what-happens-when)'
], ['Deploys', ['rollout', 'hooks'], '[Deploying](deploying.md)'], ['Releases', ['releases'],
  '[Releases](releases.md)'], ['Fleet', ['fleet'], '[Fleet](fleet.md)'], ['Telemetry', ['telemetry'],
  '[Telemetry](telemetry.md)'], ['Logs, history and diagnostics', ['logs', 'history'], '[Logs](logs.md)']]

/**
 * The tables of the manual that are made from the code, each between two marks: `npm run tables` puts
 * them in.
 */
export const TABLES = Object.freeze([{ page: 'api', mark: 'calls', table: callsTable() }, { page: 'ci', mark: 'script',
  table: scriptOf('ci/deploy.sh') }, { page: 'cli', mark: 'commands', table: commandsTable() }, { page: 'agents',
  mark: 'tools', table: toolsTable() }, { page: 'api', mark: 'hostcalls', table: hostCallsTable() }, {
  page: 'moving-in',
  mark: 'keys',
  table: keysTable()
}, { page: 'options', mark: 'options', table: optionsTable() }, { page: 'options', mark: 'live', table: liveText() }, {
  page: 'states',
  mark: 'events',
  table: eventsTable()
}])

/** The options that can be changed while the app runs, whole sections by their names. */
function liveText (): string {
  const isLive = ({ takesEffect }: Option) => takesEffect === 'now'
  const sectionOf = ({ name }: Option) => name.split('.')[0]
  const names = OPTIONS.filter(isLive).map((option) => {
    const all = OPTIONS.filter((other) => sectionOf(other) === sectionOf(option))
    return all.length > 1 && all.every(isLive) ? `${sectionOf(option)}.*` : option.name
  })
  return `\n${[...new Set(names)].map((name) => `\`${name}\``).join(', ')}\n\n`
}

/** `file`: from the top */
function scriptOf (file: string) {
  const lines = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').trimEnd().split('\n')
  return `\n${lines.map((line) => line && `    ${line}`).join('\n')}\n\n`
}

/** `text`: of a page */
export function withTable (text: string, mark: string, table: string) {
  return text.replace(new RegExp(`(<!-- ${mark} -->\\n).*?(<!-- /${mark} -->)`, 's'),
    (_, begin, end) => begin + table + end)
}

/** The commands with their own flags, as the words of the help have them. */
function commandsTable (): string {
  const rows = COMMAND_NAMES.map((name) => {
    const [[head, ...lines], after] = [wordsOf(name), (line: string) => line.slice(line.indexOf(': ') + 2)]
    const usage = lines.find((line) => line.startsWith('usage: '))
    const before = (line: string) => line.slice(0, line.indexOf(': '))
    const words = [before(head), ...lines.filter((line) => line.startsWith('[')).map(before)]
    const call = usage ? `${name} ${after(usage).replace('[options] ', '')}` : words.join(' ')
    const flags = lines.filter((line) => line.startsWith('-')).map((line) => `\`${before(line)}\``)
    const about = after(head)
    const cells = [`\`clusterdeck ${call}\``, `${about[0].toUpperCase()}${about.slice(1)}.`, flags.join(', ')]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return ['| command | does | its flags |', '| --- | --- | --- |', ...rows, ''].join('\n')
}

/** The tools of an agent, with what they say of themselves. */
function toolsTable (): string {
  const [{ groups }] = deckOperations()
  const toolbox = createToolbox({ takesApp: true, version: '', now: Date.now, groups: () => groups,
    confirmations: createConfirmations({ now: Date.now }), report () {} })
  const toolsOf = (role: Role) =>
    toolbox(async () => ({ status: 200, headers: {}, body: '' }), { auth: fake({ role }), hasFleet: true }).list()
  const ofViewer = new Set(toolsOf('viewer').map(({ name }) => name))
  const rows = toolsOf('operator').map(({ name, description }) =>
    `| \`${name}\` | ${description} | ${ofViewer.has(name) ? 'viewer' : 'operator'} |`
  )
  return ['| tool | does | needs |', '| --- | --- | --- |', ...rows, ''].join('\n')
}

/** @returns the operations of the API as a table of the manual */
function callsTable (): string {
  return tableOfCalls(deckOperations())
}

function deckOperations () {
  return operationsOf(fake({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({}))
}

/** @returns the same of those that a host has itself */
function hostCallsTable (): string {
  return tableOfCalls(hostOperations(fake({ apps: {}, access: {}, now: Date.now }), () => ({})))
}

function tableOfCalls (mounts: Mount[]) {
  const rows = mounts.flatMap(({ base, groups }) =>
    Object.values(groups).flatMap(({ resources }) =>
      Object.entries(resources).flatMap(([path, resource]) =>
        Object.entries(resource).map(([method, { summary, role, byToken }]) => {
          return `| \`${method} ${base === '/' ? '' : base}${path.replace(/:(\w+)/g, '{$1}')}\` | ${summary}. | ${
            role ?? 'anyone'
          }${byToken ? ', by a token' : ''} |`
        })
      )
    )
  )
  return ['| call | does | needs |', '| --- | --- | --- |', ...rows, ''].join('\n')
}

/** The manual's table of events. */
function eventsTable () {
  const rows = EVENT_TYPES.map((type) => `| \`${type}\` | ${kindOf({ type, cause: null }).label} |`)
  return ['| type | on the dashboard |', '| --- | --- |', ...rows, ''].join('\n')
}

/** What becomes of each key of PM2, as the manual has it; keys of which the same is to be said have one row. */
function keysTable () {
  const rows = [
    ...Object.entries(KEYS).map(([key, { also = [], fate, ...rest }]) => ({ names: [key, ...also.filter((name) =>
      !/[A-Z]/.test(name)
    )], fate, ...rest })),
    ...Object.entries(FILE_KEYS).map(([key, rest]) => ({ names: [key], fate: 'left out', ...rest }))
  ]
  const texts = new Map(
    rows.map((
      { fate, becomes, about }
    ) => [about, `| ${fate} | ${becomes} | ${about.replace(/\.?$/, '.').replaceAll('|', '\\|')} |`])
  )
  return ['| PM2 | is | as, or nearest | note |', '| --- | --- | --- | --- |',
    ...[...texts].map(([about, text]) =>
      `| ${
        rows.filter((row) => row.about === about).flatMap(({ names }) => names).map((name) => `\`${name}\``).join(', ')
      } ${text}`
    ), ''].join('\n')
}

/**
 * The tables of options in the manual, made from the schema: a table for each group, and the last one for what is
 * rarely needed.
 */
function optionsTable () {
  const shown = OPTIONS.filter(({ name }) => name !== 'entry' && name !== 'args')
  const groupOf = (name: string) => name.includes('.') ? name.split('.')[0] : null
  const known = new Set(GROUPS.flatMap(([, groups]) => groups))
  for (const { name, isRare } of shown)
    if (!isRare && !known.has(groupOf(name))) throw new Error(`no heading for the option ${name}`)
  return [...GROUPS.map(([heading, groups, more]) => {
    return tableOfOptions(heading, more ? `See ${more}.` : null,
      shown.filter(({ name, isRare }) => !isRare && groups.includes(groupOf(name))))
  }),
    tableOfOptions('Rarely needed', 'The defaults of these suit nearly every app.',
      shown.filter(({ isRare }) => isRare))].join('\n')
}

function tableOfOptions (heading: string, about: string | null, options: Option[]) {
  return [`## ${heading}`, '', ...about === null ? [] : [about, ''], '| key | meaning | flag |', '| --- | --- | --- |',
    ...options.map(rowOfOption), ''].join('\n')
}

function rowOfOption ({ name, kind, flag, env, fallback, description }: Option) {
  const isShown = fallback !== undefined && typeof fallback !== 'object' && kind !== 'file'
  // The text above the tables says how a variable is named.
  const isUsual = env === `CLUSTERDECK_${flag.slice(2).toUpperCase().replaceAll('-', '_')}`
  const ways = kind === 'file' ? '' : `\`${flag}\`${name === 'workers' ? ', `-w`' : ''}${isUsual ? '' : `, \`${env}\``}`
  return `| \`${name}\` | ${description}${isShown ? `; default: \`${fallback}\`` : ''} | ${ways} |`
}

if (process.argv[1]?.endsWith('manual-tables.ts')) {
  for (const { page, mark, table } of TABLES) {
    const file = new URL(`../../views/docs/${page}.md`, import.meta.url)
    writeFileSync(file, withTable(readFileSync(file, 'utf8'), mark, table))
  }
}
