export type Unit = typeof UNITS[number]
/** What a number of an option counts; `share`: of 1, `times`: of another figure. */
export const UNITS = ['ms', 'bytes', 'share', 'times'] as const

/** `hint`: of an option. Null: its numbers have no unit. */
export function unitOf (hint: string): Unit | null {
  return UNITS.find((unit) => unit === hint) ?? null
}
