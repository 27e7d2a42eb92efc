import type { Db, Rows } from './sqlite.ts'

export type ReleaseRow = {
  /** the n of `r<n>` */
  number: number,
  outcome: string | null,
  /** wall time of its newest outcome */
  deployedMs: number | null,
  body: Record<string, unknown>,
  arguments: { args: string[], execArgv: string[] },
  marks: Record<string, string>
}

/** JSON */
type Stored = { number: number, outcome: string | null, deployedMs: number | null, body: string, arguments: string,
  marks: string }

export function createReleaseRows (db: Db) {
  const all: Rows<Stored> = db.prepare(
    'SELECT number, outcome, deployed_ms AS deployedMs, body, arguments, marks FROM releases ORDER BY number'
  )
  const upsert = db.prepare(`
    INSERT INTO releases (number, outcome, deployed_ms, body, arguments, marks) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (number) DO UPDATE SET outcome = excluded.outcome, deployed_ms = excluded.deployed_ms, body = excluded.body,
      arguments = excluded.arguments, marks = excluded.marks`)
  const forgetOthers = db.prepare('DELETE FROM releases WHERE number NOT IN (SELECT value FROM json_each(?))')
  const replace = db.transaction((rows: ReleaseRow[]) => {
    forgetOthers.run(JSON.stringify(rows.map(({ number }) => number)))
    for (const { number, outcome, deployedMs, body, arguments: words, marks } of rows) {
      upsert.run(number, outcome, deployedMs, JSON.stringify(body), JSON.stringify(words), JSON.stringify(marks))
    }
  })

  return {
    /** @returns oldest first */
    all: (): ReleaseRow[] =>
      all.all().map(({ body, arguments: words, marks, ...row }) => {
        return { ...row, body: JSON.parse(body), arguments: JSON.parse(words), marks: JSON.parse(marks) }
      }),

    /** Makes the table hold these and no others. */
    replace: (rows: ReleaseRow[]) => {
      replace.immediate(rows)
    }
  }
}
