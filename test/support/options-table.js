import { OPTIONS } from '../../server/config/options.js'

/** The README's table of options, made from the schema: `node test/support/options-table.js` prints it. */
export function optionsTable () {
  const rows = OPTIONS.filter(({ name }) => name !== 'entry' && name !== 'args').map(({ name, kind, flag, env, fallback, description }) => {
    const isShown = fallback !== undefined && !Array.isArray(fallback)
    if (kind === 'file') return `| \`${name}\` | | | | ${description} |`
    return `| \`${name}\` | \`${flag}\`${name === 'workers' ? ', `-w`' : ''} | \`${env}\` | ${isShown ? `\`${fallback}\`` : ''} | ${description} |`
  })
  return ['| key | flag | environment | default | meaning |', '| --- | --- | --- | --- | --- |', ...rows].join('\n')
}

if (process.argv[1]?.endsWith('options-table.js')) console.log(optionsTable())
