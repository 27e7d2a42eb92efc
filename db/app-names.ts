/** The names of apps in a column: a JSON array, or null. */

export function withAppsText<Row extends { apps?: readonly string[] | null }> (row: Row) {
  return { ...row, apps: row.apps ? JSON.stringify(row.apps) : null }
}

export function withAppNames<Row extends { apps: string | null }> (
  row: Row
): Omit<Row, 'apps'> & { apps: string[] | null } {
  return { ...row, apps: row.apps === null ? null : JSON.parse(row.apps) }
}
