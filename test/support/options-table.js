import { OPTIONS } from '../../server/config/options.js'

/** Headings of the manual's page of options, what they hold (beginnings of names), and the page that says more. @type {[string, (string | null)[], string?][]} */
const GROUPS = [
  ['General', [null, 'sticky'], '[Connections](connections.md)'],
  ['Admin page', ['admin'], '[Security](security.md)'],
  ['Start and readiness', ['start', 'ready'], '[Readiness](readiness.md)'],
  ['Draining and stopping', ['drain', 'stop', 'crash'], '[How it works](how-it-works.md#drain)'],
  ['Restarts, hangs and recycling', ['restart', 'watchdog', 'recycle', 'keeper'], '[How it works](how-it-works.md#what-happens-when)'],
  ['Deploys', ['rollout', 'hooks'], '[Deploying](deploying.md)'],
  ['Releases', ['releases'], '[Releases](releases.md)'],
  ['Fleet', ['fleet'], '[Fleet](fleet.md)'],
  ['Logs, history and diagnostics', ['logs', 'history', 'diagnostics'], '[Logs](logs.md)']
]

/** The tables of options in the manual, made from the schema. */
export function optionsTable () {
  const shown = OPTIONS.filter(({ name }) => name !== 'entry' && name !== 'args')
  const groupOf = (/** @type {string} */ name) => name.includes('.') ? name.split('.')[0] : null
  const known = new Set(GROUPS.flatMap(([, groups]) => groups))
  for (const { name } of shown) if (!known.has(groupOf(name))) throw new Error(`no heading for the option ${name}`)
  return GROUPS.map(([heading, groups, more]) => [
    `## ${heading}`,
    '',
    ...more ? [`See ${more}.`, ''] : [],
    '| key | default | flag, environment | meaning |',
    '| --- | --- | --- | --- |',
    ...shown.filter(({ name }) => groups.includes(groupOf(name))).map(rowOf),
    ''
  ].join('\n')).join('\n')
}

/** @param {import('../../server/config/options.js').Option} option */
function rowOf ({ name, kind, flag, env, fallback, description }) {
  const isShown = fallback !== undefined && typeof fallback !== 'object' && kind !== 'file'
  const ways = kind === 'file' ? '' : `\`${flag}\`${name === 'workers' ? ', `-w`' : ''}, \`${env}\``
  return `| \`${name}\` | ${isShown ? `\`${fallback}\`` : ''} | ${ways} | ${description} |`
}
