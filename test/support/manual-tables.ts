import { readFileSync, writeFileSync } from 'node:fs'
import { callsTable, hostCallsTable } from './calls-table.ts'
import { eventsTable } from './events-table.ts'
import { keysTable } from './keys-table.ts'
import { optionsTable } from './options-table.ts'

/**
 * The tables of the manual that are made from the code, each between two marks: `node test/support/manual-tables.ts`
 * puts them in.
 */
export const TABLES = Object.freeze([{ page: 'api', mark: 'calls', table: callsTable() }, { page: 'ci', mark: 'script',
  table: scriptOf('ci/deploy.sh') }, { page: 'api', mark: 'hostcalls', table: hostCallsTable() }, { page: 'moving-in',
  mark: 'keys', table: keysTable() }, { page: 'options', mark: 'options', table: optionsTable() }, { page: 'states',
  mark: 'events', table: eventsTable() }])

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

if (process.argv[1]?.endsWith('manual-tables.ts')) {
  for (const { page, mark, table } of TABLES) {
    const file = new URL(`../../views/docs/${page}.md`, import.meta.url)
    writeFileSync(file, withTable(readFileSync(file, 'utf8'), mark, table))
  }
}
