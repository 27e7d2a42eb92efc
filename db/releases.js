/**
 * @typedef {object} ReleaseRow
 * @property {number} number  the n of `r<n>`
 * @property {string | null} outcome
 * @property {number | null} deployedMs  wall time of its newest outcome
 * @property {Record<string, any>} body
 * @property {{ args: string[], execArgv: string[] }} arguments
 * @property {Record<string, string>} marks
 */

/** @typedef {ReturnType<typeof createReleaseRows>} ReleaseRows */
/** @typedef {{ number: number, outcome: string | null, deployedMs: number | null, body: string, arguments: string, marks: string }} Stored JSON */

/**
 * Keeps the releases, some dozens at most.
 * @param {import('./open.js').Db} db
 */
export function createReleaseRows (db) {
  /** @type {import('./sqlite.js').Rows<Stored>} */
  const all = db.prepare('SELECT number, outcome, deployed_ms AS deployedMs, body, arguments, marks FROM releases ORDER BY number')
  const upsert = db.prepare(`
    INSERT INTO releases (number, outcome, deployed_ms, body, arguments, marks) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (number) DO UPDATE SET outcome = excluded.outcome, deployed_ms = excluded.deployed_ms, body = excluded.body,
      arguments = excluded.arguments, marks = excluded.marks`)
  const forgetOthers = db.prepare('DELETE FROM releases WHERE number NOT IN (SELECT value FROM json_each(?))')
  const replace = db.transaction((/** @type {ReleaseRow[]} */ rows) => {
    forgetOthers.run(JSON.stringify(rows.map(({ number }) => number)))
    for (const { number, outcome, deployedMs, body, arguments: words, marks } of rows) {
      upsert.run(number, outcome, deployedMs, JSON.stringify(body), JSON.stringify(words), JSON.stringify(marks))
    }
  })

  return {
    /** @returns {ReleaseRow[]} oldest first */
    all: () => all.all().map(({ body, arguments: words, marks, ...row }) => {
      return { ...row, body: JSON.parse(body), arguments: JSON.parse(words), marks: JSON.parse(marks) }
    }),

    /** Makes the table hold these and no others. @param {ReleaseRow[]} rows */
    replace: (rows) => { replace.immediate(rows) }
  }
}
