import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createOwner } from '../support/owner.ts'
import type { TestOwner } from '../support/deck.ts'

const RESULTS = path.join(import.meta.dirname, '.results')

/**
 * Tries one fault after the other, and tells what has become of each: on the terminal, and as JSON and Markdown in
 * files of that name below test/faults/.results. A row that is not clean ends the program with 1.
 */
export async function tryEach<F extends { title: string, skip?: string | false }, Row> (name: string,
  faults: readonly F[], attempt: (owner: TestOwner, fault: F) => Promise<Row>,
  { isClean, summarize, toMarkdown }: { isClean: (row: Row) => boolean, summarize: (row: Row) => string,
    toMarkdown: (rows: Row[]) => string })
{
  const rows: Row[] = []
  for (const fault of faults) {
    process.stdout.write(`${fault.title} … `)
    if (fault.skip) {
      console.log(`skipped: ${fault.skip}`)
      continue
    }
    const owner = createOwner()
    const row = await attempt(owner, fault).finally(owner.end)
    rows.push(row)
    console.log(summarize(row))
  }
  const table = toMarkdown(rows)
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(path.join(RESULTS, `${name}.json`), `${JSON.stringify(rows, null, 2)}\n`)
  writeFileSync(path.join(RESULTS, `${name}.md`), `${table}\n`)
  console.log(
    `\n${table}\n\n${rows.filter(isClean).length} of ${rows.length} rows clean; ${
      path.relative(process.cwd(), RESULTS)
    }/${name}.{json,md}`
  )
  process.exitCode = rows.every(isClean) ? 0 : 1
}

/** `only`: names, separated by commas. Returns whether something has that name; ends the program where nothing has. */
export function chooser (only: string | undefined,
  all: readonly { name: string }[]): (each: { name: string }) => boolean
{
  const names = only?.split(',') ?? []
  const unknown = names.filter((name) => !all.some((each) => each.name === name))
  if (unknown.length === 0) return ({ name }) => names.includes(name)
  console.error(`--only: expected ${all.map(({ name }) => name).join(', ')}, received ${unknown.join(', ')}`)
  process.exit(2)
}
