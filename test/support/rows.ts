/** @returns the table of a test, which has a row a line, and bars, or what somebody says, between its cells */
export function rows (table: string, between: string = '|'): string[][] {
  return table.trim().split('\n').map((line) => line.split(between).map((cell) => cell.trim()))
}
