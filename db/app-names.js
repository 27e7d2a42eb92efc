/** The names of apps in a column: a JSON array, or null. */

/** @template {{ apps?: readonly string[] | null }} Row @param {Row} row */
export function withAppsText (row) {
  return { ...row, apps: row.apps ? JSON.stringify(row.apps) : null }
}

/** @template {{ apps: string | null }} Row @param {Row} row @returns {Omit<Row, 'apps'> & { apps: string[] | null }} */
export function withAppNames (row) {
  return { ...row, apps: row.apps === null ? null : JSON.parse(row.apps) }
}
