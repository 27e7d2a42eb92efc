import { OPTIONS, type Option } from '../../server/config/options.ts'

/** Headings of the manual's page of options, what they hold (beginnings of names), and the page that says more. */
const GROUPS: [string, (string | null)[], string?][] = [['General', [null, 'sticky'], '[Connections](connections.md)'],
  ['Admin page', ['admin'], '[Security](security.md)'], ['Start and readiness', ['ready'], '[Readiness](readiness.md)'],
  ['Draining and stopping', ['drain'], '[How it works](how-it-works.md#drain)'], ['Restarts, hangs and recycling', [
  'restart',
  'watchdog',
  'recycle',
  'limits'
], '[How it works](how-it-works.md#what-happens-when)'], ['Deploys', ['rollout', 'hooks'], '[Deploying](deploying.md)'],
  ['Releases', ['releases'], '[Releases](releases.md)'], ['Fleet', ['fleet'], '[Fleet](fleet.md)'], ['Telemetry', [
  'telemetry'
], '[Telemetry](telemetry.md)'], ['Logs, history and diagnostics', ['logs', 'history'], '[Logs](logs.md)']]

/**
 * The tables of options in the manual, made from the schema: a table for each group, and the last one for what is
 * rarely needed.
 */
export function optionsTable () {
  const shown = OPTIONS.filter(({ name }) => name !== 'entry' && name !== 'args')
  const groupOf = (name: string) => name.includes('.') ? name.split('.')[0] : null
  const known = new Set(GROUPS.flatMap(([, groups]) => groups))
  for (const { name, isRare } of shown)
    if (!isRare && !known.has(groupOf(name))) throw new Error(`no heading for the option ${name}`)
  return [...GROUPS.map(([heading, groups, more]) => {
    return tableOf(heading, more ? `See ${more}.` : null,
      shown.filter(({ name, isRare }) => !isRare && groups.includes(groupOf(name))))
  }), tableOf('Rarely needed', 'The defaults of these suit nearly every app.', shown.filter(({ isRare }) => isRare))]
    .join('\n')
}

function tableOf (heading: string, about: string | null, options: Option[]) {
  return [`## ${heading}`, '', ...about === null ? [] : [about, ''], '| key | default | flag, environment | meaning |',
    '| --- | --- | --- | --- |', ...options.map(rowOf), ''].join('\n')
}

function rowOf ({ name, kind, flag, env, fallback, description }: Option) {
  const isShown = fallback !== undefined && typeof fallback !== 'object' && kind !== 'file'
  const ways = kind === 'file' ? '' : `\`${flag}\`${name === 'workers' ? ', `-w`' : ''}, \`${env}\``
  return `| \`${name}\` | ${isShown ? `\`${fallback}\`` : ''} | ${ways} | ${description} |`
}
