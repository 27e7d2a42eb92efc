import { FILE_KEYS, KEYS } from '../../server/import/keys.ts'

/** What becomes of each key of PM2, as the manual has it; keys of which the same is to be said have one row. */
export function keysTable () {
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
