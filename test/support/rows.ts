/** @returns the table of a test, which has a row a line, and bars between its cells */
export function rows (table: string): string[][] {
  return table.trim().split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
}
